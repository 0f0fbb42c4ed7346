"""Programs to trace. `torch` is the library that the loader (`_load.py`) puts here: the same text runs on both.

Functions whose name begins with `f_` take a tensor; classes whose name begins with `M` are modules.
"""

import collections
import math
import operator

nn = torch.nn  # noqa: F821
F = torch.nn.functional  # noqa: F821
fx = torch.fx  # noqa: F821
T = torch  # noqa: F821
WEIGHT = T.arange(12.0).reshape(3, 4)
Pair = collections.namedtuple("Pair", "a b")


# -- functions --------------------------------------------------------------------------------------------------------
def f_add(x):
    return x + 1


def f_operators(x):
    y = (x * 2 - 1) / 3 // 1 % 5
    return (-(y**2) + abs(x)) @ x.t() + 2 ** (1 - x).sum()


def f_compare(x):
    return (x > 0) & (x <= 2) | ~(x == 1) ^ (x != 3) | (x < 5) | (x >= 7)


def f_reflected(x):
    return 1 + x, 1 - x, 2 * x, 3 / x, 2**x, 7 // x, 7 % x


def f_functions(x):
    return T.relu(T.neg(x)) + T.sum(x, dim=1, keepdim=True) + T.cat([x, x], dim=0)[:3]


def f_given_by_name(x):
    return T.sum(input=x, dim=0), T.max(x, dim=1)[0], T.clamp(x, min=0.0), T.add(x, x, alpha=2), T.sum(x, axis=1)


def f_methods(x):
    return x.relu().sum(dim=1).view(-1, 1).transpose(0, 1).contiguous().to(T.float64)


def f_attributes(x):
    return x.shape[0] + x.size(1), x.dtype, x.device, x.T, x.ndim


def f_index(x):
    return x[0], x[:, 1:3], x[..., None], x[1, ::2], x[[0, 2]], x[x > 1]


def f_functional(x):
    y = F.relu(F.gelu(x))
    y = F.dropout(y, 0.5, training=False)
    return F.softmax(F.layer_norm(y, (4,)), dim=-1)


def f_linear(x):
    return F.linear(x, WEIGHT)


def f_constant(x):
    return WEIGHT + x, x + WEIGHT, WEIGHT.add(x), WEIGHT @ x.t(), WEIGHT * x, WEIGHT - x


def f_conv(x):
    return F.max_pool2d(F.conv2d(x.view(1, 1, 3, 4), T.ones(1, 1, 2, 2), padding=1), 2)


def f_losses(x):
    return F.mse_loss(x, x), F.cross_entropy(x, x.argmax(1), label_smoothing=0.1), F.l1_loss(x, x, reduction="sum")


def f_activations(x):
    return (
        F.leaky_relu(x, 0.2),
        F.elu(x),
        F.silu(x),
        F.hardtanh(x, -2.0, 2.0),
        F.softplus(x),
        F.logsigmoid(x),
        F.threshold(x, 0.1, 20.0),
        F.glu(x, dim=1),
        F.relu(x, inplace=False),
    )


def f_pads(x):
    return F.pad(x, (1, 1), value=2.0), F.normalize(x), F.one_hot(x.long() % 3, 3)


def f_python_functions(x):
    return T.einsum("ij,kj->ik", x, x), T.split(x, 2, dim=1)[0], T.norm(x), T.tensordot(x, x.t(), 1)


def f_broadcast(x):
    a, b = T.broadcast_tensors(x, WEIGHT[0])
    return a + b


def f_linalg(x):
    return T.linalg.norm(x, ord=2), T.fft.fft(x), T.special.entr(x)


def f_where(x):
    return T.where(x > 1, x, 0.0)


def f_factories(x):
    n = x.size(0)
    return T.zeros(n), T.ones((n, 2)), T.full((n, 2), 1.0), T.arange(n), T.zeros_like(x), T.eye(n)


def f_dtype_arguments(x):
    return T.ones_like(x, dtype=T.float64, device=T.device("cpu")), x.to(T.float16), x.sum(dtype=T.float64)


def f_unpack(x):
    a, b, c = x.unbind(0)
    return a * b + c


def f_out_of_order(x):
    a = x.sin()
    b = x.cos()
    return b, a, b


def f_dict(x):
    return {"a": x + 1, "b": [x, (x,)]}


def f_nothing(x):
    return None


def f_input(x):
    return x


def f_unused(x):
    x.exp()
    return x.log()


def f_default(x, scale=2.0, shift=None):
    return x * scale


def f_keyword_only(x, *, scale=3):
    return x * scale


def f_varargs(x, *rest):
    return x + rest[0]


def f_varkeywords(x, **more):
    return x * more["scale"]


def f_annotated(x: T.Tensor, y: T.Tensor | None = None) -> T.Tensor:
    z = x + 1
    return z


def f_annotated_more(x: T.Tensor) -> tuple[T.Tensor, list[int], dict[str, float]]:
    return x, [1], {"a": 2.0}


def f_annotated_new(x: T.Tensor) -> "tuple[T.Tensor, list[int]]":
    return x, [1]


def f_math(x):
    return math.sqrt(x.size(0)) + math.floor(x.size(1) / 2)


def f_inplace(x):
    y = x.clone()
    y += 1
    y.mul_(2)
    return y


def f_named_tuple(x):
    return Pair(x, x + 1)


def f_slices(x):
    n = x.size(1)
    return x[:, : n - 1], x[:, n // 2 :]


def f_infinite(x):
    return x.clamp(max=float("inf")), T.full_like(x, float("nan"))


def f_builtin_names(x):
    max = x + 1
    return T.max(max), T.min(max), T.abs(max), T.all(max > 0), T.any(max > 0)


def f_same_name(x):
    return x.add(1).add(2).add(3), x + 1 + 2, T.add(x, 1)


def f_getattr(x):
    return x.shape, getattr(x, "grad", None)


def f_stack(x):
    return T.stack([x, x, WEIGHT], dim=1).mean((0, 1)).std(unbiased=False)


def f_operator_functions(x):
    return operator.add(x, 1), operator.getitem(x, 0), operator.neg(x)


def f_interpolate(x):
    return F.interpolate(x.view(1, 1, 3, 4), scale_factor=2.0, mode="nearest")


def f_attention(x):
    q = x.view(1, 3, 4)
    return F.scaled_dot_product_attention(q, q, q)


def f_embedding(x):
    return F.embedding(x.long() % 3, WEIGHT)


def f_expand(x):
    b, c = x.shape
    return x.unsqueeze(0).expand(2, b, c).reshape(-1, c)


def f_pool(x):
    y = x.view(1, 1, 3, 4)
    return F.avg_pool2d(y, 2), F.adaptive_avg_pool2d(y, 1), F.adaptive_max_pool2d(y, 1), F.avg_pool1d(x, 2)


def f_bool_methods(x):
    return x.masked_fill(x > 2, 0.0).any(), T.isnan(x), T.logical_not(x), x.eq(1).float()


def f_sort(x):
    values, indices = T.sort(x, dim=1, descending=True)
    return values, indices, T.topk(x, 2)[1]


# -- wrapped ----------------------------------------------------------------------------------------------------------
@fx.wrap
def wrapped(x, y=1):
    return x + y if x.sum() > 0 else x - y


fx.wrap("len")


def f_wrapped(x):
    return wrapped(x, y=2) + len(x)


# -- modules ----------------------------------------------------------------------------------------------------------
class MLinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 5)
        self.param = nn.Parameter(T.ones(3, 4))

    def forward(self, x):
        return T.topk(T.sum(self.linear(x + self.param).relu(), dim=-1), 3)


class MSequential(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Sequential(nn.Linear(8, 2), nn.Dropout(0.1)))

    def forward(self, x):
        return self.net(x)


class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = nn.LayerNorm(n)
        self.fc = nn.Linear(n, n)
        self.register_buffer("scale", T.ones(n))

    def forward(self, x):
        return x + self.fc(self.norm(x)) * self.scale


class MNested(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(4) for _ in range(2)])
        self.table = nn.ModuleDict({"a": Block(4), "b c": Block(4)})

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.table["b c"](self.table["a"](x))


class MShared(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = self.a

    def forward(self, x):
        return self.b(self.a(x)) + self.a.weight[0]


class MParameters(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(T.ones(4) * i) for i in range(3)])
        self.register_buffer("shift", T.arange(4.0))
        self.plain = T.ones(4)

    def forward(self, x):
        for w in self.weights:
            x = x * w
        return x + self.shift - self.plain + self.plain


class MConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, padding=1)
        self.bn = nn.BatchNorm2d(2)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(2, 3)

    def forward(self, x):
        x = x.view(-1, 1, 3, 4)
        x = F.relu(self.bn(self.conv(x)))
        x = self.pool(x).flatten(1)
        return self.head(x)


class MKeywords(nn.Module):
    def __init__(self):
        super().__init__()
        self.bilinear = nn.Bilinear(4, 4, 2)

    def forward(self, x, y=None, *, flag=True):
        if flag is None:
            return x
        return self.bilinear(input1=x, input2=x)


class MTwice(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.GELU()

    def forward(self, x):
        return self.act(self.act(x)) + self.act(x)


class MAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x):
        x = x.view(1, 3, 4)
        out, weights = self.attention(x, x, x, need_weights=True)
        return out + weights.sum()


class MRecurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 3, batch_first=True)

    def forward(self, x):
        out, (h, c) = self.rnn(x.view(1, 3, 4))
        return out[:, -1] + h[0] + c[0]


class MStatic(nn.Module):
    def __init__(self, n=2):
        super().__init__()
        self.n = n

    def forward(self, x):
        if self.training:
            x = x + 1
        for i in range(self.n):
            x = x * i
        return x


# -- what cannot be traced --------------------------------------------------------------------------------------------
def bad_if(x):
    return x if x.sum() > 0 else -x


def bad_loop(x):
    return sum(v for v in x)


def bad_len(x):
    return T.zeros(x.__len__())


def bad_star(x):
    return T.cat(*x)


def bad_argument(x):
    return x.foo(object())


def bad_key(x):
    return wrapped({x: 1})


def bad_item_assignment(x):
    x[0] = 3
    return x


def bad_not(x):
    return not x


def bad_assert(x):
    assert x.sum() > 0
    return x
