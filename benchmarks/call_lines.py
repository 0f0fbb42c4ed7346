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
    "activations": """
        F.elu(a); F.selu(a); F.celu(a); F.hardtanh(a); F.relu6(a); F.hardswish(a); F.hardsigmoid(a); F.mish(a)
        F.logsigmoid(a); F.softsign(a); F.tanhshrink(a); F.softshrink(a); F.hardshrink(a); F.threshold(a, 0.1, 0.0)
        F.prelu(a, one); F.rrelu(a); F.gelu(a, approximate="tanh"); F.softmin(a, dim=1); F.gumbel_softmax(a)
        F.sigmoid(a); F.tanh(a); F.relu(a, inplace=False); F.relu_(c); F.leaky_relu_(c); F.elu_(c)
    """,
    "more layers": """
        F.max_pool1d(signal, 2); F.avg_pool1d(signal, 2); F.max_pool3d(volume, 2); F.avg_pool3d(volume, 2)
        F.adaptive_max_pool2d(image, 2); F.adaptive_avg_pool1d(signal, 2); F.adaptive_max_pool1d(signal, 2)
        F.lp_pool2d(image, 2, 2); F.max_pool2d(image, 3, stride=2, padding=1)
        F.max_pool2d(image, 2, return_indices=True); F.conv3d(volume, filters3)
        F.conv_transpose2d(image, back_filters); F.conv_transpose1d(signal, back_taps)
        F.conv2d(image, depth, groups=3); F.bilinear(a, a, w3); F.embedding_bag(picked.view(1, 3), a)
        F.instance_norm(image); F.local_response_norm(image, 2); F.layer_norm(a, (4,), v, v)
        F.group_norm(image, 3, ones, zeros); F.fold(cols, (4, 4), 2); F.pixel_shuffle(packed, 2)
        F.pixel_unshuffle(image, 2); F.channel_shuffle(packed, 2); F.interpolate(image, size=(4, 4), mode="bilinear")
        F.grid_sample(image, grid, align_corners=False); F.affine_grid(theta, (1, 3, 4, 4), align_corners=False)
        F.pad(image, (1, 1, 1, 1), mode="reflect"); F.pad(image, (1, 1, 1, 1)); F.dropout2d(image, 0.5)
        F.alpha_dropout(a, 0.5); F.feature_alpha_dropout(image, 0.5); F.pairwise_distance(a, b); F.pdist(a)
        F.scaled_dot_product_attention(q, q, q, attn_mask=mask)
    """,
    "more losses": """
        F.poisson_nll_loss(a, b); F.gaussian_nll_loss(a, b, p); F.soft_margin_loss(a, signs)
        F.hinge_embedding_loss(a, signs); F.margin_ranking_loss(v, v, v); F.multi_margin_loss(a, labels)
        F.multilabel_margin_loss(a, places); F.multilabel_soft_margin_loss(a, p)
        F.ctc_loss(logs, targets, lengths, target_lengths); F.cross_entropy(a, p)
        F.cross_entropy(a, labels, weight=v); F.cross_entropy(a, labels, reduction="none")
        F.mse_loss(a, b, reduction="sum"); F.nll_loss(a, labels, reduction="none")
    """,
    "properties": """
        a.dtype; a.device; a.ndim; a.grad; a.data; a.is_leaf; a.layout; a.itemsize; a.nbytes; a.real; a.mT; a.H
        a.is_cuda; a.is_sparse; a.grad_fn; a._version; a.dim(); a.size(); a.stride(); a.storage_offset()
        a.element_size(); a.nelement(); a.data_ptr(); a.is_floating_point(); a.is_complex(); a.get_device()
        a.stride(0); a.is_same_size(b); a.is_signed(); a.is_contiguous(memory_format=t.contiguous_format)
        t.is_tensor(a); t.numel(a); t.is_floating_point(a); isinstance(a, t.Tensor); isinstance(a, t.nn.Parameter)
        hash(a); a is b; a.untyped_storage(); a.shape == b.shape; a.dtype == t.float32; a.device == b.device
        a.device.type; a.dtype.is_floating_point; a.is_inference(); a.is_pinned(); a.type(); t.is_storage(a)
        a.shape.numel(); t.promote_types(t.int64, t.float32); t.can_cast(t.int64, t.float32); t.get_default_dtype()
        t.iinfo(t.int32).max; g.requires_grad; g.is_leaf; g.grad_fn; g.data; repr(s); f"{s:.2f}"; str(a.shape)
        repr(t.float32); v.tolist()
    """,
    "more methods": """
        a.abs(); a.neg(); a.sigmoid(); a.tanh(); a.relu(); a.sqrt(); a.rsqrt(); a.log(); a.log1p(); a.expm1(); a.sin()
        a.cos(); a.floor(); a.ceil(); a.sign(); a.reciprocal(); a.square(); a.erf(); a.trunc(); a.frac(); a.add(b)
        a.sub(b); a.mul(b); a.div(b); a.pow(b); a.add(1); a.mul(2.0); a.sub(1.0); a.div(2.0); a.pow(2); a.eq(b)
        a.ne(b); a.lt(b); a.gt(0.5); a.ge(b); a.maximum(b); a.minimum(b); a.fmod(b); a.remainder(2.0); a.atan2(b)
        a.logical_and(b); a.logical_not(); a.matmul(b); a.mm(b); a.mv(v); a.addmm(a, b); a.where(ab, b)
        a.clip(0.0, 1.0); a.nan_to_num(); a.lerp(b, 0.5); a.addcmul(a, b); a.softmax(-1); a.log_softmax(-1); a.mean(0)
        a.sum((0, 1)); a.sum(0, dtype=t.float64); a.std(0); a.var(); a.amax(); a.amin(0); a.argmin(1); a.max(b)
        a.min(); a.max(dim=0, keepdim=True); a.any(); a.all(1); a.cumprod(0); a.logsumexp(0); a.norm(dim=1); a.norm(2)
        a.nansum(); a.nanmean(); a.aminmax(); a.kthvalue(2); a.mode(); a.quantile(0.5); a.histc(4); a.diff()
        a.trace(); a.diag(); a.triu(); a.tril(); a.unflatten(1, (2, 2)); a.squeeze(0); a.swapaxes(0, 1)
        a.expand_as(b); a.reshape(2, 8); a.reshape((2, 8)); a.view(2, -1); a.view((2, 8)); a.view(t.int32)
        a.unfold(0, 2, 1); a.tile(2); a.repeat_interleave(2); a.repeat_interleave(2, dim=0); a.split([1, 3])
        a.tensor_split(2); a.as_strided((2, 2), (1, 2)); a.select(0, 1); a.index_copy(0, labels, b)
        a.index_put((picked,), one); a.flip([0]); a.rot90(); a.ravel(); a.flatten(0, 1); a.contiguous(); a.fliplr()
        a.broadcast_to((2, 4, 4)); a.unique(); a.sort(dim=0, descending=True); a.argsort(descending=True)
        a.topk(2, dim=0); a.isfinite(); a.isnan(); a.isinf(); a.bernoulli(); a.new_tensor([1.0]); a.new_empty((2, 2))
        a.new_full((2, 2), 1.0); a.new_ones(2); a.clone().detach(); a.detach().numpy(); a.detach().cpu().numpy()
        a.to(t.float16); a.to("cpu", t.float64); a.bfloat16(); a.int(); a.type(t.float64); a.__array__()
        numpy.asarray(a); t.as_tensor(array); t.as_tensor(a); t.from_numpy(array).float(); copy.copy(a)
        copy.deepcopy(a)
    """,
    "more functions": """
        t.sigmoid(a); t.sin(a); t.log(a); t.neg(a); t.sub(a, b); t.div(a, b); t.div(a, b, rounding_mode="floor")
        t.floor_divide(a, b); t.remainder(a, b); t.clamp(a, 0.0, 1.0); t.clamp(a, min=a); t.minimum(a, b); t.sum(a)
        t.sum(a, dim=1); t.mean(a); t.mean(a, dim=0); t.max(a); t.max(a, dim=1); t.max(a, b); t.argmax(a, dim=1)
        t.std(a); t.var(a, dim=0); t.norm(a); t.prod(a, 0); t.any(ab); t.all(ab); t.cumsum(a, dim=0); t.sort(a)
        t.topk(a, 2); t.kthvalue(a, 2); t.matmul(a, b); t.matmul(a, v); t.matmul(v, v); t.baddbmm(x3, x3, x3)
        t.addbmm(a, x3, x3); t.addmv(v, a, v); t.addr(a, v, v); t.ger(v, v); t.inner(v, v); t.kron(a, b)
        t.cross(ones3, ones3, dim=1); t.vdot(v, v); t.linalg.multi_dot([a, b, a]); t.einsum("ij,ij->", a, b)
        t.einsum("bhqd,bhkd->bhqk", q, q); t.einsum("ii", a); t.einsum("i,j->ij", v, v); t.trapezoid(v)
        t.cumulative_trapezoid(v); t.reshape(a, (2, 8)); t.squeeze(a); t.unsqueeze(a, 0); t.permute(a, (1, 0))
        t.flatten(a); t.flip(a, (0,)); t.roll(a, 1); t.chunk(a, 2); t.unbind(a); t.movedim(a, 0, 1); t.stack((a, b))
        t.cat((a, b), -1); t.concat([a, b]); t.column_stack([v, v]); t.dstack([a, b]); t.block_diag(a, b)
        t.cartesian_prod(v, v); t.combinations(v); t.broadcast_tensors(a, v); t.broadcast_shapes((2, 1), (3,))
        t.atleast_2d(v); t.tile(a, (2, 2)); t.narrow(a, 0, 0, 2); t.select(a, 0, 1); t.take_along_dim(a, places, 1)
        t.gather(a, 1, places); t.index_select(a, 0, picked); t.masked_select(a, ab); t.where(ab)
        t.nonzero(ab, as_tuple=True); t.argwhere(ab); t.diag(v); t.diag_embed(v); t.diagonal(a); t.triu(a)
        t.tril_indices(3, 3); t.isin(ai, labels); t.isclose(a, b); t.histc(a, 4); t.histogram(a, 4); t.bucketize(a, v)
        t.searchsorted(v, a); t.unique(ai, return_inverse=True); t.unique_consecutive(labels); t.clone(a); t.real(a)
        t.complex(a, b); t.polar(a, b); t.view_as_complex(pairs); t.view_as_real(z); t.abs(z); z * z; z.conj()
        t.logical_and(ab, bb); t.logical_not(ab); t.bitwise_and(ai, bi); t.bitwise_left_shift(ai, 1); t.square(a)
        t.hypot(a, b); t.atan2(a, b); t.logaddexp(a, b); t.xlogy(a, b); t.special.expit(a); t.special.gammaln(a)
        t.lgamma(a); t.digamma(a); t.erfinv(a); t.nan_to_num(a); t.renorm(a, 2, 0, 1.0); t.dist(a, b); t.cov(a)
        t.corrcoef(a); t.cumprod(a, 0); t.cummax(a, 0); t.logcumsumexp(a, 0); t.aminmax(a); t.nanmedian(a)
        t.std_mean(a); t.rsub(a, 1); t.heaviside(a, b); t.gcd(ai, bi); t.floor(a); t.addcdiv(a, b, b); t.softmax(a, 0)
        t.log_softmax(a, dim=0); t.conv2d(image, filters); t.dropout(a, 0.5, True); t.embedding(a, picked)
        t.pixel_shuffle(packed, 2); t.cosine_similarity(a, b)
    """,
    "out": """
        t.add(a, b, out=c); t.sub(a, b, out=c); t.sqrt(a, out=c); t.mm(a, b, out=c); t.sum(a, 1, out=out4)
        t.mean(a, 1, out=out4); t.cat([a, b], out=out84); t.clamp(a, 0, 1, out=c); t.bmm(x3, x3, out=out3)
        t.max(a, 1, out=(out4, outi)); t.stack([a, b], out=out3); t.abs(a, out=c); t.maximum(a, b, out=c)
        t.zeros(4, 4, out=c); t.arange(4, out=outi); t.gt(a, b, out=outb); t.index_select(a, 0, labels, out=c)
        t.gather(a, 1, places, out=c); t.cumsum(a, 0, out=c); t.addmm(a, a, b, out=c); t.argmax(a, 1, out=outi)
        t.pow(a, 2, out=c); t.tanh(a, out=c); t.div(a, 2.0, out=c)
    """,
    "index forms": """
        a[0]; a[0][0]; a[...]; a[:]; a[:, None]; a[None, :, None]; a[1:]; a[:-1]; a[:, ::2]; a[0, 1:3]; a[..., -1, :]
        a[ab]; a[ab, ...]; a[picked]; a[picked, 0]; a[0, picked]; a[[0, 1], [1, 0]]; a[picked[:, None], picked]
        a[v > 0]; a[labels, labels]; x3[0, :, picked]; x3[:, 0]; a[True]; a[t.tensor(1)]; a[si - 1, 0]; a[(0, 1)]
        a[slice(0, 2)]; put(c, 0, 1.0); put(c, (0, 0), 1.0); put(c, slice(None), a); put(c, ab, v[0])
        put(c, picked, 0.0); put(c, (slice(None), 0), v); put(c, (picked, picked), 1.0); put(c, Ellipsis, 0.0)
        c.index_put_((picked,), one); c.put_(picked, ones); a.select_scatter(v, 0, 0); a.diagonal_scatter(v)
        a.masked_scatter(ab, b); a.scatter_reduce(1, places, b, "sum"); c.scatter_add_(1, places, b)
        c.index_add_(0, labels, b); c.index_copy_(0, labels, b)
    """,
    "more creation": """
        t.zeros(3, device="cpu"); t.zeros((2, 3), dtype=t.int64); t.ones(2, 3, dtype=t.float16); t.full((2,), 1)
        t.full((2,), 1.0, dtype=t.float64, device="cpu"); t.empty(2, 3, device=cpu); t.empty(0); t.zeros([])
        t.arange(5.0); t.arange(0, 1, 0.25); t.arange(4, dtype=t.float32); t.arange(4, device="cpu")
        t.linspace(0, 1, 4, dtype=t.float64); t.logspace(0, 1, 4); t.eye(3, 4); t.eye(3, dtype=t.float64); t.tensor(3)
        t.tensor(True); t.tensor([1, 2, 3]); t.tensor([1, 2], dtype=t.float32); t.tensor(1.0, device="cpu")
        t.tensor([1.0], requires_grad=True); t.tensor([]); t.as_tensor([1.0, 2.0]); t.scalar_tensor(1.0)
        t.zeros_like(a, dtype=t.int64); t.randn(4); t.randn(2, 3, dtype=t.float64); t.randn((2, 3), device="cpu")
        t.randn_like(a); t.randint(10, (2,)); t.randint_like(a, 10); t.rand(2, generator=gen); t.poisson(a)
        t.normal(a, b); t.empty_strided((2, 2), (1, 2)); t.FloatTensor([1.0]); t.LongTensor([1]); t.Tensor(2, 3)
        t.FloatTensor(2, 3); t.zeros(3, requires_grad=True); t.rand(3, requires_grad=True); t.Generator()
        t.device("cpu", 0); t.tril_indices(2, 2); t.hann_window(8); t.vander(v); t.frombuffer(raw, dtype=t.uint8)
        t.asarray(array); t.from_dlpack(a); t.tensor(a.tolist()); t.tensor([v[0], v[1]]); c.random_(0, 10)
        c.exponential_(); c.log_normal_(); t.nn.init.uniform_(c); t.nn.init.xavier_uniform_(c)
        t.nn.init.kaiming_uniform_(c); t.nn.init.zeros_(c); t.nn.init.normal_(c); t.nn.init.constant_(c, 1.0)
    """,
    "more in place": """
        c.zero_(); c.add_(1.0); c.add_(a); c.mul_(1.0); c.sigmoid_(); c.relu_(); c.tanh_(); c.abs_(); c.sqrt_()
        c.pow_(1.0); c.copy_(ad); c.copy_(v); c.t_().t_(); c.unsqueeze_(0).squeeze_(0); c.clamp_(min=0.0); c.fill_(s)
        c.floor_(); c.div_(b); c.tril_(); c.fill_diagonal_(1.0); c.masked_fill_(ab, s); c.data.copy_(a); c.detach_()
        c.resize_(4, 4); c.logical_not_()
    """,
    "more modules": """
        relu(a); linear(a); layered(a); grouped(image); pooled(image); flat(image); sequential(a); convolved1(signal)
        averaged(image); soft(a); normed1(a); gru(sequence); gru_cell(a, a); encoder(tokens)
        bagged(picked.view(1, 3)); padded(image); upsampled(image); criterion(a, labels); mse(a, b); bce(a, p)
        t.nn.ReLU(); t.nn.Conv2d(3, 4, 3); t.nn.LayerNorm(4); t.nn.BatchNorm2d(3); t.nn.Dropout()
        t.nn.Embedding(4, 4); t.nn.Sequential(linear, relu); t.nn.ModuleList([linear, relu]); t.nn.LSTM(4, 4)
        list(sequential.children()); list(sequential.modules()); list(sequential.named_modules())
        list(sequential.buffers()); sequential[0]; len(sequential); sequential.parameters()
        dict(sequential.named_parameters()); linear.requires_grad_(True); linear.train(); linear.zero_grad()
        linear.float(); linear.cpu(); linear.apply(nothing); repr(linear); linear.bias; linear.in_features
        norm.running_mean; linear.extra_repr(); linear.named_parameters(); hooked(a); linear.get_parameter("weight")
        sequential.state_dict(); sequential.train(); sequential.eval(); copy.deepcopy(linear)
        t.nn.utils.parameters_to_vector(params); t.nn.utils.clip_grad_norm_(params, 1.0)
        t.nn.utils.rnn.pad_sequence([v, v]); parametrised(a); attending(tokens, tokens, tokens); custom(a)
    """,
    "optimizers": """
        sgd.step(); sgd.zero_grad(); momentum.step(); adam.step(); adamw.step(); rmsprop.step(); adagrad.step()
        adadelta.step(); adamax.step(); nadam.step(); radam.step(); asgd.step(); rprop.step(); sgd.state_dict()
        adam.state_dict(); t.optim.SGD(params, lr=0.1); t.optim.Adam(params); sgd.param_groups[0]["lr"]
        sgd.zero_grad(set_to_none=False); stepped.step(); exponential.step(); lambdas.step(); stepped.get_last_lr()
        scaler.is_enabled(); averaged_model.update_parameters(linear)
    """,
    "more autograd": """
        g + a; g * 2; g - 1; g / a; -g; g.relu(); g.sigmoid(); g.view(-1); g.t(); g[0, 1]; g[1:]; g[picked]
        g.unsqueeze(0); g.transpose(0, 1); g.sum(1); g.max(); g.max(1); g.std(); g.norm(); g.pow(2); g.sqrt(); g.log()
        g.clamp(0, 1); g.abs(); t.stack([g, a]); g.expand(2, 4, 4); g.masked_fill(ab, 0.0); g.gather(1, places)
        g.float(); g.contiguous(); F.relu(g); F.gelu(g); F.linear(g, w, v); F.log_softmax(g, 1); F.conv2d(image, gf)
        F.max_pool2d(gi, 2); F.batch_norm(gi, zeros, ones, training=True); F.embedding(picked, g)
        F.scaled_dot_product_attention(gq, gq, gq); g.requires_grad_(); g.split(2); g.unbind()
        t.einsum("ij,jk->ik", g, a); g.register_hook(nothing).remove(); hooked_grad(g); Detached.apply(g)
        back((g * 2).sum()); back((g + a).mean()); back(g.exp().sum()); back(g.relu().sum()); back(g.sigmoid().sum())
        back(g.max()); back(g.t().sum()); back(g.view(-1)[0]); back(g[picked].sum()); back(F.linear(g, w, v).sum())
        back(F.log_softmax(g, 1).sum()); back(F.gelu(g).sum()); back(t.stack([g, a]).sum()); back(g.std())
        back(F.dropout(g, 0.5).sum()); back(F.max_pool2d(image * g[0, 0], 2).sum())
        back(F.batch_norm(image * g[0, 0], zeros, ones, training=True).sum()); back(F.embedding(picked, g).sum())
        back(t.einsum("ij,jk->ik", g, a).sum()); back(linear(g).sum()); back(layered(g).sum())
        back(attending(tokens * g[0, 0], tokens, tokens)[0].sum()); back(cell(g, state)[0].sum())
        back(recurrent(sequence * g[0, 0])[0].sum()); back(g.cumsum(0).sum()); back(t.where(ab, g, a).sum())
        back(g.clamp(0, 1).sum()); back(g.sum(1).pow(2).sum()); back(g.gather(1, places).sum())
        back(conv(image * g[0, 0]).sum()); back(F.interpolate(image * g[0, 0], scale_factor=2).sum())
        t.autograd.grad(g.exp().sum(), g, create_graph=True); t.autograd.backward(g.sum())
        t.autograd.functional.jacobian(t.exp, v); t.func.grad(summed)(v); t.func.vmap(t.sin)(a)
        t.utils.checkpoint.checkpoint(t.sin, g, use_reentrant=False); twice(g)
    """,
    "linalg and fft": """
        t.linalg.det(ad); t.linalg.solve(ad, ad); t.linalg.cholesky(spd); t.linalg.qr(ad); t.linalg.svd(ad)
        t.linalg.eigh(spd); t.linalg.eig(ad); t.linalg.lstsq(ad, ad); t.linalg.pinv(ad); t.linalg.matrix_rank(ad)
        t.linalg.vector_norm(a); t.linalg.matrix_norm(a); t.linalg.matrix_power(a, 2); t.linalg.slogdet(ad)
        t.linalg.lu(ad); t.linalg.lu_factor(ad); t.linalg.eigvalsh(spd); t.linalg.svdvals(ad)
        t.linalg.solve_triangular(ad, ad, upper=True); t.linalg.cross(ones3, ones3); t.linalg.norm(a, dim=1)
        t.linalg.cond(ad); t.linalg.matrix_exp(ad); t.linalg.vecdot(a, a); t.inverse(ad); t.det(ad)
        t.cholesky_solve(ad, spd); t.fft.fft(v); t.fft.ifft(z[0]); t.fft.rfft(v); t.fft.irfft(z[0]); t.fft.fft2(a)
        t.fft.rfft2(a); t.fft.fftn(a); t.fft.fftfreq(8); t.fft.fftshift(v)
    """,
    "more linalg and fft": """
        t.linalg.svd(a); t.linalg.svd(a, full_matrices=False); t.linalg.lstsq(a, b); t.linalg.pinv(a)
        t.linalg.eigvals(a); t.linalg.eigh(x3 @ x3.mT); t.fft.fft(a, dim=0); t.fft.irfft(z[0], 6); t.fft.rfft(ones)
        t.fft.irfft2(z); t.fft.ifft2(z); t.fft.rfftn(a); t.fft.hfft(z[0]); t.fft.fftshift(a)
        t.einsum("ij,jk,kl->il", a, b, c); t.einsum("i,ij,j->", v, a, v); t.einsum("...ij,...jk->...ik", x3, x3)
        t.einsum("bij,jk->bik", x3, a)
    """,
    "more conversions and draws": """
        a.to(cpu); a.to(device="cpu"); a.to("cpu", copy=True); a.to(dtype=t.float16); a.numpy(force=True)
        a.to(memory_format=t.contiguous_format); a.type("torch.FloatTensor"); a.is_meta; a.is_cpu; a.is_nested
        a.is_conj(); a.is_neg(); g.requires_grad_(); t.multinomial(v, 4, replacement=True); categorical.sample((4,))
        put(c, picked, 0.0); put(c, v > 0.5, 0.0); a.index_reduce(0, labels, b, "prod"); c.masked_scatter_(ab, b)
        F.pad(image, (1, 1, 1, 1), mode="replicate"); F.grid_sample(image, grid, mode="nearest", align_corners=True)
        t.repeat_interleave(v, labels); a.median(0); a.mode(0); c.random_(0, 10); within(t.random.fork_rng())
    """,
    "contexts and programs": """
        within(t.no_grad()); within(t.set_grad_enabled(False)); within(t.autograd.set_detect_anomaly(False))
        no_gradient(a); within(t.device("cpu")); t.set_grad_enabled(True); t.is_inference_mode_enabled()
        t.get_num_threads(); t.is_autocast_enabled(); t.cuda.is_available(); t.get_default_device()
        t.random.initial_seed(); t.set_rng_state(rng); t.utils.data.default_collate([(v, 1), (v, 2)])
        t.utils.data.default_collate([1.0, 2.0]); t.utils.data.default_collate([{"x": v}, {"x": v}])
        t.utils.data.default_convert(array); list(t.utils.data.SequentialSampler(data))
        list(t.utils.data.RandomSampler(data)); t.utils.data.random_split(data, [8, 8])
        t.utils.data.Subset(data, [0])[0]; list(loader); t.distributions.Normal(0.0, 1.0).log_prob(v)
        normal.sample((4,)); normal.log_prob(v); normal.entropy(); t.distributions.kl_divergence(normal, normal)
        t.distributions.Uniform(0.0, 1.0).sample(); t.distributions.Bernoulli(p).sample(); categorical.log_prob(si0)
        t.jit.is_scripting(); t.jit.is_tracing(); t.compiler.is_compiling(); t.overrides.has_torch_function((a,))
        t.overrides.is_tensor_like(a); t.utils._pytree.tree_map(same, [a, (b, {"x": c})])
        t._foreach_add(params, 1.0); t._foreach_mul_(grads, 1.0); t._assert(True, ""); t.manual_seed(1)
        t.testing.assert_close(a, a); save(a)
    """,
    "everyday": """
        a != b; a >= b; ab | bb; a @ v; a.sum(0); a.mean((0, 1), keepdim=True); a.max(dim=1); a.std(1); ab.all()
        ab.sum(1); a.cumsum(1); a.cumprod(1); t.median(a); t.quantile(v, 0.5); a.logsumexp(1); a.view(4, -1)
        a.view(2, 2, 4); a.transpose(-2, -1); x3.transpose(1, 2); a.unsqueeze(-1); a[None].squeeze(0)
        a.expand(2, 4, 4); a.repeat(2, 2); t.flatten(x3, 1); x3.permute(0, 2, 1); a.unflatten(0, (2, 2))
        t.broadcast_to(v, (4, 4)); a[0, 1]; a[:, 0]; a[..., -1]; a[[0, 2]]; v[2].item(); a[::2, 1:]; t.cat([a, b], 1)
        t.cat((a, b, c)); t.split(a, 2); a.chunk(2, 1); a.unbind(0); t.tensor_split(a, 2); t.vstack([v, v])
        t.zeros(2, 3); t.ones((2, 3)); t.rand(3); t.randn(2, 2); t.full((2,), 1.0); t.arange(5)
        t.arange(0.0, 1.0, 0.1); t.linspace(0, 1, 10); t.eye(3); t.empty(3); t.tensor(3.0); t.tensor([[1, 2], [3, 4]])
        t.zeros_like(a); t.randint(0, 5, (3,)); t.randperm(5); t.tensor([True, False]); t.full_like(a, 1); a.exp()
        a ** 0.5; a.clamp(0, 1); a.clamp_min(0); t.erf(a); t.rsqrt(a); t.log1p(a); t.fmod(a, b); t.where(a > b, a, b)
        F.gelu(a); F.softmax(a, -1); F.log_softmax(a, -1); F.linear(a, w); F.linear(a, w, v); F.layer_norm(a, (4,))
        F.dropout(a, 0.1); F.embedding(picked, w); F.conv2d(image, filters, padding=1); F.cross_entropy(a, labels)
        F.one_hot(labels); F.normalize(a, dim=1); F.interpolate(image, scale_factor=2, mode="nearest")
        F.interpolate(image, scale_factor=2, mode="bilinear"); F.cosine_similarity(a, b, dim=1)
        F.adaptive_avg_pool2d(image, (1, 1)); F.leaky_relu(a); F.unfold(image, 2); F.group_norm(image, 1); a.tolist()
        v.numpy(); a.to(t.float64); a.to(t.int32); a.clone(); a.detach(); a.detach().clone(); repr(a); a.shape
        a.__len__(); list(a); t.nonzero(v, as_tuple=True); c.add_(1); c.fill_(0.0); c.uniform_(0, 1); c.sub_(b)
        c.div_(1.0); c.scatter_(1, places, b); c.exp_(); c.t_(); c.random_(10); c.random_(); c.bernoulli_()
        t.mul(a, 2.0, out=c); t.sum(a, 0, out=out4); t.mean(a, 0, out=out4); t.stack([v, v], out=t.empty(2, 4))
        t.where(ab, a, b, out=c); t.sort(a, out=(c, t.empty(4, 4, dtype=t.int64))); t.norm(a, out=t.empty(()))
        t.linspace(0, 1, 4, out=out4); t.arange(4, out=out4); t.cumsum(a, 1, out=c)
        t.index_select(a, 0, picked, out=t.empty(3, 4)); t.topk(v, 2, out=(t.empty(2), t.empty(2, dtype=t.int64)))
        t.linalg.inv(a); t.linalg.det(a); t.linalg.solve(a, v); t.linalg.norm(v); t.linalg.qr(a)
        t.linalg.matrix_rank(a); t.inverse(a); t.det(a); t.trace(a); t.linalg.svdvals(a); t.linalg.slogdet(a)
        t.linalg.cross(ones, ones); t.cross(ones, ones, dim=0); t.fft.ifft(t.fft.fft(v)); t.fft.irfft(t.fft.rfft(v))
        t.einsum("ij->i", a); t.einsum("ii->i", a); t.einsum("bij->bji", x3); t.einsum("i,i->", v, v); a.sort(1)
        a.argsort(1); a.topk(2, 1); t.unique(labels); t.searchsorted(v, 0.5); a.index_select(1, picked); t.histc(v, 4)
        t.kthvalue(v, 2); t.isin(labels, picked); t.bucketize(v, v); t.cummax(a, 1); t.msort(a)
        list(linear.parameters()); dict(linear.named_parameters()); linear.to(t.float32); repr(sequential)
        t.nn.Parameter(a); next(linear.parameters()).device; sum(x.numel() for x in sequential.parameters())
        back(g.mean()); back((g * a).sum()); back(F.linear(g, w).sum()); back(F.relu(g).sum())
        back(F.softmax(g, 1)[0, 0]); t.autograd.grad(g.sum(), g); back(g.pow(2).sum()); back(g.view(-1).sum())
        back(g[0, 0]); back(F.layer_norm(g, (4,)).mean()); back(F.embedding(picked, g).mean()); back(linear(g).mean())
        data[3]; len(data); t.utils.data.TensorDataset(a, labels); t.utils.data.DataLoader(data, 4); t.equal(a, a)
        t.promote_types(t.float32, t.int64); t.Generator().manual_seed(1); t.broadcast_shapes((1, 4), (4, 1))
        t.result_type(a, ai); t.typename(a); t.vmap(t.sin)(a)
    """,
}

OPERANDS = """
import copy
import io

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


one, volume, filters3 = t.full((1,), 0.5), t.rand(1, 2, 4, 4, 4), t.rand(2, 2, 2, 2, 2)
back_filters, back_taps = t.rand(3, 4, 3, 3), t.rand(3, 4, 3)
depth, w3, cols = t.rand(3, 1, 3, 3), t.rand(2, 4, 4), t.rand(1, 8, 9)
packed, grid = t.rand(1, 8, 4, 4), t.rand(1, 4, 4, 2)
theta, mask, signs, logs = t.rand(1, 2, 3), t.rand(4, 4), t.sign(t.rand(4, 4) - 0.5), t.rand(6, 2, 4).log_softmax(-1)
targets, lengths, target_lengths = t.tensor([[1, 2], [2, 3]]), t.tensor([6, 6]), t.tensor([2, 2])
ones3, pairs, z = t.rand(4, 3), t.rand(4, 2), t.rand(4, 4, dtype=t.complex64)
cpu, gen, raw = t.device("cpu"), t.Generator(), bytearray(16)
out4, out84, out3 = t.empty(4), t.empty(8, 4), t.empty(2, 4, 4)
outi, outb = t.empty(4, dtype=t.int64), t.empty(4, 4, dtype=t.bool)
spd, rng, si0 = ad @ ad.T + t.eye(4, dtype=t.float64), t.get_rng_state(), t.tensor(0)
relu, layered, grouped = t.nn.ReLU(), t.nn.LayerNorm(4), t.nn.GroupNorm(3, 3)
pooled, flat = t.nn.MaxPool2d(2), t.nn.Flatten()
sequential = t.nn.Sequential(t.nn.Linear(4, 4), t.nn.ReLU(), t.nn.Dropout(0.1), t.nn.Linear(4, 4), t.nn.LayerNorm(4))
convolved1, averaged = t.nn.Conv1d(3, 4, 3), t.nn.AdaptiveAvgPool2d(1)
soft, normed1 = t.nn.Softmax(-1), t.nn.BatchNorm1d(4)
gru, gru_cell, encoder = t.nn.GRU(4, 4), t.nn.GRUCell(4, 4), t.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
bagged, padded, upsampled = t.nn.EmbeddingBag(4, 4), t.nn.ZeroPad2d(1), t.nn.Upsample(scale_factor=2)
criterion, mse, bce = t.nn.CrossEntropyLoss(), t.nn.MSELoss(), t.nn.BCEWithLogitsLoss()
hooked, parametrised = t.nn.Linear(4, 4), t.nn.utils.parametrizations.weight_norm(t.nn.Linear(4, 4))
hooked.register_forward_pre_hook(lambda module, arguments: None)
hooked.register_forward_hook(lambda module, arguments, result: None)
gf, gi, gq = [each.clone().requires_grad_() for each in (filters, image, q)]
grads = [param.grad for param in params]


def stepped_once(make):
    own = [t.nn.Parameter(t.rand(4, 4)) for _ in range(4)]
    for each in own:
        each.grad = t.rand(4, 4)
    made = make(own)
    made.step()
    return made


O = t.optim
sgd, momentum = (stepped_once(lambda x: O.SGD(x, lr=1e-9, momentum=m)) for m in (0.0, 0.9))
adam, adamw = stepped_once(O.Adam), stepped_once(O.AdamW)
rmsprop, adagrad = stepped_once(O.RMSprop), stepped_once(O.Adagrad)
adadelta, adamax = stepped_once(O.Adadelta), stepped_once(O.Adamax)
nadam, radam, asgd, rprop = stepped_once(O.NAdam), stepped_once(O.RAdam), stepped_once(O.ASGD), stepped_once(O.Rprop)
stepped, exponential = O.lr_scheduler.StepLR(momentum, 10**9), O.lr_scheduler.ExponentialLR(adagrad, 1.0)
lambdas = O.lr_scheduler.LambdaLR(adamw, lambda epoch: 1.0)
scaler, averaged_model = t.amp.GradScaler("cpu", enabled=False), O.swa_utils.AveragedModel(linear)
normal, categorical = t.distributions.Normal(0.0, 1.0), t.distributions.Categorical(logits=v)


def nothing(_):
    return None


def same(x):
    return x


def put(x, key, value):
    x[key] = value


def summed(x):
    return (x * x).sum()


def hooked_grad(x):
    y = x * 2
    y.register_hook(nothing)
    y.retain_grad()
    return y


def twice(x):
    (first,) = t.autograd.grad((x * x * x).sum(), x, create_graph=True)
    return t.autograd.grad(first.sum(), x)


@t.no_grad()
def no_gradient(x):
    return x + 1


def save(x):
    buffer = io.BytesIO()
    t.save(x, buffer)


class Custom(t.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = t.nn.Linear(4, 8), t.nn.Linear(8, 4)
        self.scale = t.nn.Parameter(t.ones(4))

    def forward(self, x):
        return self.second(self.first(x).relu()) * self.scale


custom = Custom()


class Detached(t.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -grad
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
