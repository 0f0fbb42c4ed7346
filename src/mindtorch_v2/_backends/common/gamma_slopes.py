"""How samples of the gamma family move with their concentrations.

There is no closed form. The approximations are PyTorch's, by regions: a series where the sample is small, a saddle
point expansion where the concentration is large, and a rational function between. Invariant: every region is computed
for every element and the right one is chosen; `m` is the module of the functions, NumPy's or an own one over tensors.
"""

from __future__ import annotations

from typing import Any

_GAMMA_MIDDLE = (
    (0.16009398, -0.094634809, 0.025146376, -0.0030648343, 1, 0.32668115, 0.10406089, 0.0014179084),
    (0.53487893, 0.1298071, 0.065735949, -0.0015649758, 0.16639465, 0.020070113, -0.0035938915, -0.00058392623),
    (
        0.040121004,
        -0.0065914022,
        -0.0026286047,
        -0.0013441777,
        0.017050642,
        -0.0021309326,
        0.00085092367,
        -1.5247877e-07,
    ),
)
# Numerator and denominator, by powers of log x, of log(alpha / x), and of the third variable.
_BETA_MIDDLE = (
    (
        (
            (1.003668233, -0.01061107488, -0.0657888334, 0.01201642863),
            (0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033),
            (-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013),
        ),
        (
            (0.221950385, -0.3187676331, 0.01799915743, 0.01074823814),
            (-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057),
            (0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05),
        ),
        (
            (-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565),
            (0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181),
            (0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05),
        ),
    ),
    (
        (
            (1, -0.02924021934, -0.04438342661, 0.007285809825),
            (0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521),
            (-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149),
        ),
        (
            (0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273),
            (0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956),
            (-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05),
        ),
        (
            (0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05),
            (0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05),
            (-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06),
        ),
    ),
)


# -- the derivative of a gamma sample by its concentration ------------------------------------------------------------
def _polynomial(coefficients: Any, x: Any) -> Any:
    """By Horner; the coefficients begin with the constant."""
    result = coefficients[-1]
    for c in coefficients[-2::-1]:
        result = c + x * result
    return result


def _small_gamma(m: Any, a: Any, x: Any) -> Any:
    numerator = m.ones_like(x)
    series, squares = 1 / a, 1 / (a * a)
    for i in range(1, 6):
        numerator = numerator * (-x / i)
        series = series + numerator / (a + i)
        squares = squares + numerator / ((a + i) * (a + i))
    power = x**a
    by_alpha = (m.log(x) - m.digamma(a)) * (power * series) - power * squares
    result = -by_alpha / (x ** (a - 1) * m.exp(-x))
    return m.where(m.isnan(result), 0.0, result)


def _large_gamma(m: Any, a: Any, x: Any) -> Any:
    """A saddle point expansion; beside the mean, where it has a pole, its limit."""
    near = (
        (1 + 24 * a * (1 + 12 * a))
        * (1440 * (a * a) + 6 * x * (53 - 120 * x) - 65 * x * x / a + a * (107 + 3600 * x))
        / (1244160 * (a * a) * (a * a))
    )
    root, log_ratio = m.sqrt(8 * a), m.log(x / a)
    pole, rest = root / (a - x), (x - a - a * log_ratio) ** -1.5
    slope = log_ratio * m.where(x < a, pole - rest, pole + rest) - m.sqrt(2 / a) * (a + x) / ((a - x) * (a - x))
    stirling = 1 + 1 / (12 * a) * (1 + 1 / (24 * a))
    return m.where((0.8999999761581421 * a <= x) & (x <= 1.100000023841858 * a), near, -stirling * (x * slope) / root)


def gamma_slope(m: Any, a: Any, x: Any) -> Any:
    """How a gamma sample `x` moves with its concentration `a`."""
    u, v = m.log(x / a), m.log(a)
    by_u = [_polynomial(c, u) for c in zip(*_GAMMA_MIDDLE)]
    middle = m.exp(_polynomial(by_u[:4], v) / _polynomial(by_u[4:], v))
    return m.where(x < 0.800000011920929, _small_gamma(m, a, x), m.where(a > 8, _large_gamma(m, a, x), middle))


# -- the derivative of a beta sample by its first concentration -------------------------------------------------------
def _beta_near_zero(m: Any, x: Any, a: Any, b: Any) -> Any:
    factor = m.digamma(a) - m.digamma(a + b) - m.log(x)
    numerator = m.ones_like(x)
    series = numerator / a * (factor + 1 / a)
    for i in range(1, 11):
        numerator = numerator * ((i - b) * x / i)
        series = series + numerator / (a + i) * (factor + 1 / (a + i))
    result = x * (1 - x) ** -b * series
    return m.where(m.isnan(result), 0.0, result)


def _beta_near_one(m: Any, x: Any, a: Any, b: Any) -> Any:
    """By the other concentration, where the other sample `x` is small."""
    factor = m.digamma(a + b) - m.digamma(b)
    numerator, product, slope = m.ones_like(x), m.ones_like(x), m.zeros_like(x)
    series = factor / a
    for i in range(1, 9):
        numerator = numerator * (-x / i)
        slope = slope * (b - i) + product
        product = product * (b - i)
        series = series + numerator / (a + i) * (slope + factor * product)
    result = -((1 - x) ** (1 - b)) * series
    return m.where(m.isnan(result), 0.0, result)


def _stirling(x: Any) -> Any:
    return 1 + 1 / (12 * x) + 1 / (288 * x * x)


def _beta_both_large(m: Any, x: Any, a: Any, b: Any) -> Any:
    """A saddle point expansion; beside the mean, where it has a pole, its limit."""
    total = a + b
    mean, spread = a / total, m.sqrt(a * b / (total + 1)) / total
    bb = b * b
    inner = (453 + 1620 * b * (1 - x) - 455 * x) * b + a * (8 * (1 - x) * (135 * b - 11))
    inner = 3 * (59 + 180 * b - 90 * x) * bb + a * inner
    near = 47 * x * bb * bb + a * ((43 + 20 * (16 + 27 * b) * x) * bb * b + a * inner)
    near = (1 + 12 * a) * (1 + 12 * b) / (total * total) / (1 - x) * near
    near = near / (12960 * a * a * a * b * b * (1 + 12 * total))
    off = a * (x - 1) + b * x
    first = (2 * (a * a) * (x - 1) + a * b * (x - 1) - x * bb) / (m.sqrt(2 * a / b) * total**1.5 * off * off)
    rest = (b * m.log(b / (total * (1 - x))) + a * m.log(a / (total * x))) ** -1.5
    second = 0.5 * m.log(a / (total * x)) * (m.sqrt(8 * a * b / total) / off + m.where(x < mean, rest, -rest))
    far = _stirling(a) * _stirling(b) / _stirling(total) * (-x / m.sqrt(2 * a * b / total)) * (first + second)
    return m.where((mean - 0.1 * spread <= x) & (x <= mean + 0.1 * spread), near, far)


def _beta_middle(m: Any, x: Any, a: Any, total: Any) -> Any:
    u = m.log(x)
    v = m.log(a) - u
    w = m.log(total) - v
    p, q = (
        _polynomial([_polynomial([_polynomial(c, w) for c in row], v) for row in table], u) for table in _BETA_MIDDLE
    )
    return p / q * (x * (m.digamma(total) - m.digamma(a)) / (total - a))


def beta_slope(m: Any, x: Any, alpha: Any, total: Any) -> Any:
    """How a beta sample `x` moves with its first concentration `alpha`, of two that add up to `total`."""
    b, edge = total - alpha, total * x * (1 - x)
    inner = m.where((alpha > 6) & (b > 6), _beta_both_large(m, x, alpha, b), _beta_middle(m, x, alpha, total))
    inner = m.where((x >= 0.5) & (edge < 0.75), -_beta_near_one(m, 1 - x, b, alpha), inner)
    return m.where((x <= 0.5) & (edge < 2.5), _beta_near_zero(m, x, alpha, b), inner)
