"""Programs whose operators `make_fx` writes down. `torch` is put here by the loader (`_load.py`)."""

T = torch  # noqa: F821
F = T.nn.functional
WEIGHT = T.ones(3)
OTHER = T.ones(2, 3)


def g_pointwise(x, y):
    return x.sin() + x.cos() * y


def g_matrices(x, y):
    return T.mm(x, y.t()).relu()


def g_constant(x, y):
    return x + WEIGHT


def g_in_place(x, y):
    z = x.clone()
    z.add_(1)
    z.mul_(y)
    return z


def g_structure(x, y):
    return {"a": x.sum(1), "b": [x[:, 1:], y.view(-1)]}


def g_number(x, y):
    return x * T.tensor(2.0)


def g_known_number(x, y):
    return x * T.tensor(2.0).item()


def g_factories(x, y):
    return T.zeros(2, 3) + x.to(T.float64), T.ones(2), T.full((2,), 3.0)


def g_gradient(x, y):
    x = x.detach().requires_grad_()
    return T.autograd.grad((x.relu() * 2).sum(), x)[0]


def g_gradient_of_product(x, y):
    x = x.detach().requires_grad_()
    return T.autograd.grad(T.tanh(x @ y.t()).sum(), [x])


def g_gradients(x, y):
    x = x.detach().requires_grad_()
    return T.autograd.grad(F.softmax(x, 1).sum() + x.exp().sum() + x.sigmoid().sum(), x)


def g_tuple(x, y):
    return T.max(x, 1)


def g_softmax(x, y):
    return F.softmax(x, dim=-1) / 2 - 1


def g_pieces(x, y):
    return x.split(2, 1)[0], T.cat([x, y]), T.stack([x, x], 1)


def g_where(x, y):
    return T.where(x > 1, x, y), F.gelu(x), F.linear(x, T.ones(4, 3))


def g_norms(x, y):
    return F.layer_norm(x, (3,)), F.cross_entropy(x, T.tensor([0, 1]))


def g_numbers(x, y):
    return x.mean(), x.var(0), x.exp().log().sqrt(), 1 - x, x / 2, x**2, -x


def g_views(x, y):
    return x.unsqueeze(0).expand(3, 2, 3).permute(2, 0, 1).reshape(-1, 2).transpose(0, 1)


def bad_value(x, y):
    return x.sum().item()


def bad_branch(x, y):
    return x if x.sum() > 0 else y
