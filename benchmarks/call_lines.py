"""Small calls by family, as code: what programs do per step, over operands that both libraries make alike.

Invariant: a line is an expression over the names of `operands`; it runs as it stands in PyTorch and in mindtorch_v2,
and leaves the operands as a next call expects them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Call = Callable[[], Any]

FAMILIES: dict[str, str] = {
    "operators": """
        a // b; a % b; a ** b; a == b; ai & bi; ~ab; abs(a); 1.0 / a; a < 0.5; a + v; a + s; at + b; ai + bi; ai * 2
        ai // 2; ai == 3; ah + bh; abf * 2; ad + ad; ab & bb
    """,
    "functions": """
        t.mul(a, b); t.add(a, 1.0); t.mul(a, b, out=c); t.exp(a, out=c); t.matmul(a, b, out=c); t.pow(a, 2)
        t.where(ab, a, 0.0); t.lerp(a, b, 0.5); t.addcmul(a, b, b); t.eq(a, b); t.equal(a, b); t.allclose(a, a)
        t.exp(a); t.tanh(a); t.abs(a); a.clamp(min=0.0); a.round(); t.isnan(a)
    """,
    "reductions": """
        a.sum(dim=-1, keepdim=True); a.mean(-1, keepdim=True); a.max(); a.min(dim=1); a.argmax(dim=-1); a.std()
        a.var(1); a.norm(); t.linalg.norm(a); a.prod(); a.all(); ab.any(); a.cumsum(0); t.logsumexp(a, 1); ab.sum()
        t.amax(a, 1); t.var_mean(a, 1); t.count_nonzero(a); a.median()
    """,
    "order and search": """
        a.topk(2); a.sort(); a.argsort(); t.unique(ai); t.bincount(labels); a.nonzero(); t.searchsorted(v, v)
        t.multinomial(v, 2)
    """,
    "products": """
        t.mm(a, b); t.bmm(x3, x3); t.matmul(x3, x3); t.mv(a, v); t.dot(v, v); t.addmm(a, a, b); t.outer(v, v)
        t.einsum("ij,jk->ik", a, b); t.einsum("bij,bjk->bik", x3, x3); t.einsum("ij->ji", a); t.tril(a); t.cdist(a, b)
        t.tensordot(a, b, dims=1); t.linalg.inv(ad)
    """,
    "shapes": """
        a.view(-1); a.flatten(); a.T; x3.mT; t.transpose(a, 0, 1); x3.permute(2, 0, 1); a.squeeze(); v.expand(4, 4)
        a.repeat(2, 1); a.narrow(0, 1, 2); a.chunk(2); t.split(a, [1, 3]); a.unbind(); a.movedim(0, 1); a.diagonal()
        at.contiguous(); a.flip(0); a.roll(1, 0); a.view_as(b); t.empty(2, 3).shape; a.size(0); a.shape[0]; len(a)
        a.shape[:-1] + (2, 2); a.numel(); a.is_contiguous(); a.requires_grad
    """,
    "joining": """
        t.cat([a, b], dim=1); t.stack([a, b], dim=-1); t.hstack([a, b]); t.vstack([a, b])
        t.meshgrid(v, v, indexing="ij")
    """,
    "indexing": """
        a[-1]; a[1:3, 2:4]; a[:, -1:]; a[picked, picked]; a[:, picked]; a[si]; a.gather(1, places)
        a.scatter(1, places, b); a.scatter_add(1, places, b); a.index_select(0, picked); a.index_add(0, labels, b)
        a.masked_fill(ab, 0.0); a.masked_select(ab); a.take(picked); a.index_fill(0, picked, 0.0); list(v)
    """,
    "leaving and converting": """
        s.item(); float(s); int(si); bool(s > 1); a.numpy(); a.cpu(); a.to("cpu"); a.to(t.float32); a.half(); a.double()
        a.float(); a.long(); a.bool(); ah.float(); a.to(b); a.type_as(ad); t.from_numpy(array); t.tensor(array); str(v)
        a.to(device="cpu", dtype=t.float64); a.untyped_storage().data_ptr()
    """,
    "creation": """
        t.empty((4, 4)); t.zeros(4, 4, dtype=t.float64); t.ones(4); t.arange(0, 10, 2); t.linspace(0, 1, 5); t.eye(4)
        t.tensor(1.0); t.tensor([[1.0, 2.0], [3.0, 4.0]]); t.ones_like(a); t.empty_like(a); t.full_like(a, 2.0)
        t.rand(4, 4); t.rand_like(a); t.randint(0, 10, (4, 4)); t.randperm(8); t.normal(0.0, 1.0, (4, 4))
        t.bernoulli(p); a.new_zeros(4, 4); t.nn.Parameter(c); t.Tensor([1.0, 2.0]); c.uniform_(); c.normal_()
        c.bernoulli_(0.5)
    """,
    "in place": """
        c.copy_(a); c.fill_(1.0); c.add_(a, alpha=0.1); c.sub_(a); c.mul_(b); c.div_(2.0); c.clamp_(0, 1); c.neg_()
        c.addcmul_(a, b, value=0.1); c.addcdiv_(a, b, value=0.1); c.lerp_(a, 0.1); c.masked_fill_(ab, 0.0)
        c.requires_grad_(False); c.index_fill_(0, picked, 1.0); c.scatter_(1, places, 1.0)
    """,
    "layers": """
        F.relu(a); F.silu(a); F.softmax(a, dim=-1); F.log_softmax(a, dim=1); F.leaky_relu(a, 0.1); F.softplus(a)
        F.glu(a); F.dropout(a, 0.5); F.dropout(a, 0.5, training=False); F.linear(x3, w, v); F.rms_norm(a, (4,))
        F.group_norm(image, 3); F.batch_norm(image, zeros, ones); F.batch_norm(image, zeros, ones, training=True)
        F.conv2d(image, filters); F.conv2d(image, filters, v, padding=1); F.conv1d(signal, taps); F.max_pool2d(image, 2)
        F.avg_pool2d(image, 2); F.adaptive_avg_pool2d(image, 1); F.interpolate(image, scale_factor=2); F.pad(a, (1, 1))
        F.scaled_dot_product_attention(q, q, q); F.scaled_dot_product_attention(q, q, q, is_causal=True)
        F.normalize(a); F.cosine_similarity(a, b); F.one_hot(labels, 4); F.unfold(image, 3)
    """,
    "losses": """
        F.mse_loss(a, b); F.l1_loss(a, b); F.smooth_l1_loss(a, b); F.nll_loss(a, labels); F.binary_cross_entropy(p, p)
        F.cross_entropy(a, labels, label_smoothing=0.1); F.binary_cross_entropy_with_logits(a, p); F.huber_loss(a, b)
        F.kl_div(a, p, reduction="batchmean"); F.cosine_embedding_loss(a, b, v); F.triplet_margin_loss(a, b, a)
    """,
    "modules": """
        conv(image); norm(image); frozen(image); embedded(picked); activated(a); dropping(a); cell(a, state)
        recurrent(sequence); attending(tokens, tokens, tokens, need_weights=False); linear.weight; linear.training
        t.nn.Linear(4, 4); linear.state_dict(); linear.load_state_dict(saved); linear.eval(); linear.to("cpu")
    """,
    "with gradients": """
        g @ a; g[0]; g.sum(); g.mean(); g.exp(); F.softmax(g, -1); F.cross_entropy(g, labels); F.mse_loss(g, b)
        F.layer_norm(g, (4,)); t.cat([g, a]); g.reshape(-1); g.detach(); g.clone(); t.where(ab, g, a); g ** 2
        Squared.apply(g); g.to(t.float64); F.dropout(g, 0.5); g.chunk(2)
    """,
    "backward": """
        back(g.sum()); back((g @ a).sum()); back(F.mse_loss(g, b)); back(F.cross_entropy(g, labels)); back(g[0].sum())
        back(F.layer_norm(g, (4,)).sum()); back(F.softmax(g, -1).sum()); back(t.cat([g, a]).sum()); back(g.norm())
        back(((g @ a).relu() @ b).pow(2).mean()); back(Squared.apply(g).sum()); t.autograd.grad((g * a).sum(), g)
        back(F.conv2d(image * g[0, 0], filters).sum()); back(F.scaled_dot_product_attention(q + g[0, 0], q, q).sum())
    """,
    "a step's rest": """
        within(t.enable_grad()); within(t.inference_mode()); within(t.autocast("cpu", dtype=t.bfloat16)); autocasted()
        t.is_grad_enabled(); t.finfo(t.float32).eps; t.result_type(a, 1); t.Size([2, 3]); t.device("cpu")
        plateau.step(1.0); cosine.step(); t.nn.utils.clip_grad_value_(params, 1.0); t._foreach_norm(params)
        next(iter(loader)); data[0]; t.utils.data.default_collate([v, v]); t.get_rng_state(); t.manual_seed(0)
        t.distributions.Normal(0.0, 1.0).sample(); t.distributions.Categorical(logits=v).sample()
    """,
}

OPERANDS = """
import numpy
t.manual_seed(0)
F = t.nn.functional
a, b, c, p, v = t.rand(4, 4), t.rand(4, 4), t.rand(4, 4), t.rand(4, 4), t.rand(4)
at, x3, s, si = t.rand(4, 4).t(), t.rand(2, 4, 4), t.tensor(2.0), t.tensor(3)
ai = t.arange(16).reshape(4, 4)
bi, ab, bb, places = ai + 1, ai > 7, ai > 3, ai % 4
ah, bh, abf, ad = a.half(), b.half(), a.bfloat16(), a.double() + t.eye(4, dtype=t.float64)
labels, picked, array = t.tensor([0, 1, 2, 3]), t.tensor([1, 3, 2]), numpy.ones((4, 4), numpy.float32)
w, image, filters, q = t.rand(4, 4), t.rand(1, 3, 8, 8), t.rand(4, 3, 3, 3), t.rand(1, 2, 4, 8)
signal, taps, zeros, ones = t.rand(1, 3, 16), t.rand(4, 3, 3), t.zeros(3), t.ones(3)
g = t.rand(4, 4, requires_grad=True)
linear, conv, norm, frozen = t.nn.Linear(4, 4), t.nn.Conv2d(3, 4, 3), t.nn.BatchNorm2d(3), t.nn.BatchNorm2d(3).eval()
embedded, activated, dropping, cell = t.nn.Embedding(16, 4), t.nn.GELU(), t.nn.Dropout(0.5), t.nn.LSTMCell(4, 4)
state, recurrent, sequence = (t.zeros(4, 4), t.zeros(4, 4)), t.nn.LSTM(4, 4), t.rand(5, 2, 4)
attending, tokens, saved = t.nn.MultiheadAttention(8, 2, batch_first=True), t.rand(1, 4, 8), linear.state_dict()
params = list(t.nn.Sequential(t.nn.Linear(4, 8), t.nn.ReLU(), t.nn.Linear(8, 4)).parameters())
for param in params:
    param.grad = t.ones_like(param)
optimizer = t.optim.SGD(params, lr=1e-9)
optimizer.step()
plateau = t.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=10**9)
cosine = t.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
data = t.utils.data.TensorDataset(t.rand(16, 4), t.arange(16))
loader = t.utils.data.DataLoader(data, batch_size=4)


def within(context):
    with context:
        pass


def autocasted():
    with t.autocast("cpu", dtype=t.bfloat16):
        return a @ b


def back(loss):
    loss.backward()
    g.grad = None


class Squared(t.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * ctx.saved_tensors[0] * grad
"""

_SPACES: dict[int, dict[str, Any]] = {}


def operands(t: Any) -> dict[str, Any]:
    """The names that lines speak of, made once for each library."""
    space = _SPACES.get(id(t))
    if space is None:
        space = _SPACES[id(t)] = {"t": t, "__name__": __name__}
        exec(OPERANDS, space)
    return space


def maker(code: str) -> Callable[[Any], Call]:
    def make(t: Any) -> Call:
        call: Call = eval(f"lambda: {code}", operands(t))
        return call

    return make


def lines() -> Iterator[tuple[str, Callable[[Any], Call]]]:
    for family in FAMILIES.values():
        for row in family.strip().splitlines():
            for code in row.split(";"):
                yield code.strip(), maker(code.strip())
