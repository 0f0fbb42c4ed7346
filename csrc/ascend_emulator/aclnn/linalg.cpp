// Linear algebra on batches of matrices: factorizations, determinants, inverses, triangular systems.
//
// Everything is computed in complex double precision; real matrices stay real in it.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernel.h"

using namespace emu;

namespace {

struct Matrix {
    int64_t rows = 0, columns = 0;
    std::vector<Complex> v;

    Matrix(int64_t r, int64_t c) : rows(r), columns(c), v(size_t(r * c)) {}
    Complex& at(int64_t i, int64_t j) { return v[size_t(i * columns + j)]; }
    const Complex& at(int64_t i, int64_t j) const { return v[size_t(i * columns + j)]; }
};

Matrix identity(int64_t n) {
    Matrix m(n, n);
    for (int64_t i = 0; i < n; ++i) m.at(i, i) = 1;
    return m;
}

Matrix adjoint(const Matrix& a) {
    Matrix t(a.columns, a.rows);
    for (int64_t i = 0; i < a.rows; ++i)
        for (int64_t j = 0; j < a.columns; ++j) t.at(j, i) = std::conj(a.at(i, j));
    return t;
}

Matrix left_columns(const Matrix& a, int64_t n) {
    Matrix t(a.rows, n);
    for (int64_t i = 0; i < a.rows; ++i)
        for (int64_t j = 0; j < n; ++j) t.at(i, j) = a.at(i, j);
    return t;
}

std::vector<Matrix> matrices(const Run& r, const Tensor& t) {
    auto values = r.read<Complex>(t);
    int64_t rows = t.dims[t.rank() - 2], columns = t.dims.back(), size = rows * columns;
    std::vector<Matrix> out;
    for (int64_t at = 0; size && at < int64_t(values.size()); at += size) {
        Matrix m(rows, columns);
        std::copy(values.begin() + at, values.begin() + at + size, m.v.begin());
        out.push_back(std::move(m));
    }
    return out;
}

void append(std::vector<Complex>& out, const Matrix& m) { out.insert(out.end(), m.v.begin(), m.v.end()); }

Dims with_matrix(const Dims& like, int64_t rows, int64_t columns) {
    Dims out = like;
    out[out.n - 2] = rows;
    out[out.n - 1] = columns;
    return out;
}
Dims batch_of(const Dims& d) { return Dims(d.v.data(), uint64_t(d.n - 2)); }

void plan_square(const Plan& p, const char* name) {
    const Dims& d = p.tensor(name).dims;
    p.require(d.n >= 2 && d[d.n - 1] == d[d.n - 2], "%s has shape %s, expected square matrices", name, text(d).c_str());
}

// -- Cholesky --------------------------------------------------------------------------------------------------------
void run_cholesky(Run& r) {
    std::vector<Complex> out;
    for (const Matrix& a : matrices(r, r.tensor("self"))) {
        Matrix l(a.rows, a.rows);
        for (int64_t j = 0; j < a.rows; ++j)
            for (int64_t i = j; i < a.rows; ++i) {
                Complex sum = r.flag("upper") ? std::conj(a.at(j, i)) : a.at(i, j);
                for (int64_t k = 0; k < j; ++k) sum -= l.at(i, k) * std::conj(l.at(j, k));
                if (i > j) l.at(i, j) = sum / l.at(j, j);
                else if (sum.real() > 0) l.at(j, j) = std::sqrt(sum.real());
                else fault("the matrix is not positive definite");
            }
        append(out, r.flag("upper") ? adjoint(l) : l);
    }
    r.write(r.tensor("out"), out);
}

// -- QR by reflections -----------------------------------------------------------------------------------------------
struct Qr {
    Matrix q, r;  // complete
};

Qr factor(const Matrix& a) {
    Qr f{identity(a.rows), a};
    for (int64_t k = 0; k < std::min(a.rows - 1, a.columns); ++k) {
        double norm = 0;
        for (int64_t i = k; i < a.rows; ++i) norm += std::norm(f.r.at(i, k));
        norm = std::sqrt(norm);
        Complex first = f.r.at(k, k);
        bool done = norm == 0 || (std::fabs(norm - std::abs(first.real())) == 0 && first.imag() == 0);
        if (done) continue;
        double beta = first.real() > 0 ? -norm : norm;  // so that nothing cancels
        std::vector<Complex> v;
        for (int64_t i = k; i < a.rows; ++i) v.push_back(f.r.at(i, k));
        v[0] -= beta;
        // For a complex first element I - tau v v^H maps the column to a real one.
        Complex product = 0;
        for (size_t i = 0; i < v.size(); ++i) product += std::conj(v[i]) * f.r.at(k + int64_t(i), k);
        Complex tau = 1.0 / product;
        for (int64_t j = 0; j < a.columns; ++j) {
            Complex sum = 0;
            for (size_t i = 0; i < v.size(); ++i) sum += std::conj(v[i]) * f.r.at(k + int64_t(i), j);
            for (size_t i = 0; i < v.size(); ++i) f.r.at(k + int64_t(i), j) -= tau * v[i] * sum;
        }
        for (int64_t j = 0; j < a.rows; ++j) {
            Complex sum = 0;
            for (size_t i = 0; i < v.size(); ++i) sum += f.q.at(j, k + int64_t(i)) * v[i];
            for (size_t i = 0; i < v.size(); ++i) f.q.at(j, k + int64_t(i)) -= sum * std::conj(tau) * std::conj(v[i]);
        }
        for (int64_t i = k + 1; i < a.rows; ++i) f.r.at(i, k) = 0;
    }
    return f;
}

enum QrMode : int64_t { kReduced = 0, kComplete = 1, kOnlyR = 2 };

void plan_qr(Plan& p, int64_t mode) {
    p.require(mode >= kReduced && mode <= kOnlyR, "mode is %lld, expected 0 (reduced), 1 (complete) or 2 (r)",
              static_cast<long long>(mode));
    const Dims& d = p.tensor("self").dims;
    int64_t m = d[d.n - 2], n = d.back(), k = mode == kComplete ? m : std::min(m, n);
    p.shape("R", with_matrix(d, k, n));
    if (mode != kOnlyR) p.shape("Q", with_matrix(d, m, k));
    p.casts(p.tensor("self").dtype, "Q");
    p.casts(p.tensor("self").dtype, "R");
}

void run_qr(Run& r, int64_t mode) {
    std::vector<Complex> q, upper;
    for (const Matrix& a : matrices(r, r.tensor("self"))) {
        Qr f = factor(a);
        int64_t k = mode == kComplete ? a.rows : std::min(a.rows, a.columns);
        append(q, left_columns(f.q, k));
        upper.insert(upper.end(), f.r.v.begin(), f.r.v.begin() + k * a.columns);
    }
    if (mode != kOnlyR) r.write(r.tensor("Q"), q);
    r.write(r.tensor("R"), upper);
}

// -- SVD by rotations of pairs of columns ----------------------------------------------------------------------------
struct Svd {
    Matrix u, v;  // complete
    std::vector<double> sigma;
};

// Columns from `given` on are made orthonormal to all before.
void complete_basis(Matrix& q, int64_t given) {
    for (int64_t j = given, axis = 0; j < q.columns; ++axis) {
        std::vector<Complex> x(size_t(q.rows));
        x[size_t(axis % q.rows)] = 1;
        for (int twice = 0; twice < 2; ++twice)
            for (int64_t k = 0; k < j; ++k) {
                Complex along = 0;
                for (int64_t i = 0; i < q.rows; ++i) along += std::conj(q.at(i, k)) * x[size_t(i)];
                for (int64_t i = 0; i < q.rows; ++i) x[size_t(i)] -= along * q.at(i, k);
            }
        double norm = 0;
        for (const Complex& e : x) norm += std::norm(e);
        if (norm < 1e-8) continue;  // this axis is spanned already
        for (int64_t i = 0; i < q.rows; ++i) q.at(i, j) = x[size_t(i)] / std::sqrt(norm);
        ++j;
    }
}

// For at least as many rows as columns.
Svd decompose_tall(Matrix a) {
    int64_t m = a.rows, n = a.columns;
    Matrix v = identity(n);
    auto rotate = [](Matrix& x, int64_t p, int64_t q, double c, Complex s) {
        for (int64_t i = 0; i < x.rows; ++i) {
            Complex left = x.at(i, p), right = x.at(i, q);
            x.at(i, p) = c * left - std::conj(s) * right;
            x.at(i, q) = s * left + c * right;
        }
    };
    for (int sweep = 0; sweep < 60; ++sweep) {
        bool turned = false;
        for (int64_t p = 0; p < n; ++p)
            for (int64_t q = p + 1; q < n; ++q) {
                double left = 0, right = 0;
                Complex both = 0;
                for (int64_t i = 0; i < m; ++i) {
                    left += std::norm(a.at(i, p));
                    right += std::norm(a.at(i, q));
                    both += std::conj(a.at(i, p)) * a.at(i, q);
                }
                double size = std::abs(both);
                if (size == 0 || size <= 1e-15 * std::sqrt(left * right)) continue;
                turned = true;
                double zeta = (right - left) / (2 * size);
                double t = (zeta >= 0 ? 1 : -1) / (std::fabs(zeta) + std::sqrt(1 + zeta * zeta));
                double c = 1 / std::sqrt(1 + t * t);
                Complex s = c * t * both / size;
                rotate(a, p, q, c, s);
                rotate(v, p, q, c, s);
            }
        if (!turned) break;
    }
    std::vector<double> length;
    for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t i = 0; i < m; ++i) sum += std::norm(a.at(i, j));
        length.push_back(std::sqrt(sum));
    }
    std::vector<int64_t> order(size_t(n), 0);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t x, int64_t y) { return length[size_t(x)] > length[size_t(y)]; });
    Svd out{Matrix(m, m), Matrix(n, n), {}};
    int64_t ranks = 0;
    for (int64_t k = 0; k < n; ++k) {
        int64_t from = order[size_t(k)];
        double sigma = length[size_t(from)];
        out.sigma.push_back(sigma);
        for (int64_t i = 0; i < n; ++i) out.v.at(i, k) = v.at(i, from);
        // What is left of a column that others span is rounding; its direction means nothing.
        if (sigma <= double(m) * 2.3e-16 * out.sigma[0]) continue;
        for (int64_t i = 0; i < m; ++i) out.u.at(i, k) = a.at(i, from) / sigma;
        ranks = k + 1;
    }
    complete_basis(out.u, ranks);
    return out;
}

Svd decompose(const Matrix& a) {
    if (a.rows >= a.columns) return decompose_tall(a);
    Svd s = decompose_tall(adjoint(a));
    std::swap(s.u, s.v);
    return s;
}

void plan_svd(Plan& p) {
    const Dims& d = p.tensor("input").dims;
    int64_t m = d[d.n - 2], n = d.back(), k = std::min(m, n);
    Dims sigma = batch_of(d);
    sigma.push(k);
    p.shape("sigma", sigma);
    p.same_dtype("input", "sigma");
    if (!p.flag("computeUV")) return;
    for (const char* name : {"u", "v"}) p.same_dtype("input", name);
    p.shape("u", with_matrix(d, m, p.flag("fullMatrices") ? m : k));
    p.shape("v", with_matrix(d, n, p.flag("fullMatrices") ? n : k));
}

void run_svd(Run& r) {
    std::vector<Complex> u, v;
    std::vector<double> sigma;
    for (const Matrix& a : matrices(r, r.tensor("input"))) {
        Svd s = decompose(a);
        int64_t k = std::min(a.rows, a.columns);
        sigma.insert(sigma.end(), s.sigma.begin(), s.sigma.end());
        append(u, r.flag("fullMatrices") ? s.u : left_columns(s.u, k));
        append(v, r.flag("fullMatrices") ? s.v : left_columns(s.v, k));
    }
    r.write(r.tensor("sigma"), sigma);
    if (!r.flag("computeUV")) return;
    r.write(r.tensor("u"), u);
    r.write(r.tensor("v"), v);
}

// -- determinants and inverses ---------------------------------------------------------------------------------------
struct Determinant {
    Complex sign = 1;
    double logarithm = 0;
};

Determinant determinant(Matrix a) {
    Determinant d;
    for (int64_t k = 0; k < a.rows; ++k) {
        int64_t best = k;
        for (int64_t i = k + 1; i < a.rows; ++i)
            if (std::abs(a.at(i, k)) > std::abs(a.at(best, k))) best = i;
        Complex pivot = a.at(best, k);
        if (pivot == Complex(0)) return {0, -INFINITY};
        if (best != k) {
            d.sign = -d.sign;
            for (int64_t j = 0; j < a.columns; ++j) std::swap(a.at(k, j), a.at(best, j));
        }
        d.sign *= pivot / std::abs(pivot);
        d.logarithm += std::log(std::abs(pivot));
        for (int64_t i = k + 1; i < a.rows; ++i) {
            Complex factor = a.at(i, k) / pivot;
            for (int64_t j = k; j < a.columns; ++j) a.at(i, j) -= factor * a.at(k, j);
        }
    }
    return d;
}

// An empty matrix has determinant 1.
std::vector<Determinant> determinants(const Run& r, const Tensor& t) {
    std::vector<Determinant> out;
    for (const Matrix& a : matrices(r, t)) out.push_back(determinant(a));
    if (out.empty()) out.resize(size_t(batch_of(t.dims).product()));
    return out;
}

void plan_slogdet(Plan& p) {
    plan_square(p, "self");
    for (const char* name : {"signOut", "logOut"}) p.shape(name, batch_of(p.tensor("self").dims));
}

void run_slogdet(Run& r) {
    std::vector<Complex> sign;
    std::vector<double> logarithm;
    for (const Determinant& d : determinants(r, r.tensor("self"))) {
        sign.push_back(d.sign);
        logarithm.push_back(d.logarithm);
    }
    r.write(r.tensor("signOut"), sign);
    r.write(r.tensor("logOut"), logarithm);
}

void plan_logdet(Plan& p) {
    plan_square(p, "self");
    p.shape("out", batch_of(p.tensor("self").dims));
}

void run_logdet(Run& r) {
    bool complex = is_complex(r.tensor("self").dtype);
    std::vector<Complex> out;
    for (const Determinant& d : determinants(r, r.tensor("self"))) {
        if (complex) out.push_back(d.logarithm + std::log(d.sign));
        else out.push_back(d.sign.real() < 0 ? NAN : d.logarithm);
    }
    r.write(r.tensor("out"), out);
}

void run_inverse(Run& r) {
    std::vector<Complex> out;
    for (Matrix a : matrices(r, r.tensor("self"))) {
        Matrix b = identity(a.rows);
        for (int64_t k = 0; k < a.rows; ++k) {
            int64_t best = k;
            for (int64_t i = k + 1; i < a.rows; ++i)
                if (std::abs(a.at(i, k)) > std::abs(a.at(best, k))) best = i;
            if (a.at(best, k) == Complex(0)) fault("the matrix cannot be inverted");
            Complex pivot = a.at(best, k);
            for (Matrix* m : {&a, &b})
                for (int64_t j = 0; j < a.rows; ++j) {
                    std::swap(m->at(k, j), m->at(best, j));
                    m->at(k, j) /= pivot;
                }
            for (int64_t i = 0; i < a.rows; ++i) {
                if (i == k) continue;
                Complex factor = a.at(i, k);
                for (Matrix* m : {&a, &b})
                    for (int64_t j = 0; j < a.rows; ++j) m->at(i, j) -= factor * m->at(k, j);
            }
        }
        append(out, b);
    }
    r.write(r.tensor("out"), out);
}

// -- triangular systems ----------------------------------------------------------------------------------------------
struct System {
    Dims batch, self, a;
};

bool system_of(const Call& c, System* out) {
    const Dims &b = c.tensor("self").dims, &a = c.tensor("A").dims;
    if (!broadcast(batch_of(b), batch_of(a), &out->batch)) return false;
    out->self = out->batch;
    out->self.push(b[b.n - 2]);
    out->self.push(b.back());
    out->a = out->batch;
    out->a.push(a[a.n - 2]);
    out->a.push(a.back());
    return b[b.n - 2] == a.back();
}

void plan_triangular(Plan& p) {
    plan_square(p, "A");
    for (const char* name : {"A", "xOut", "mOut"}) p.same_dtype("self", name);
    System s;
    p.require(system_of(p, &s), "self has shape %s, which does not fit A of shape %s",
              text(p.tensor("self").dims).c_str(), text(p.tensor("A").dims).c_str());
    p.shape("xOut", s.self);
    p.shape("mOut", s.a);
}

void run_triangular(Run& r) {
    System s;
    system_of(r, &s);
    auto x = r.read<Complex>(r.tensor("self"), s.self), a = r.read<Complex>(r.tensor("A"), s.a);
    int64_t n = s.a.back(), k = s.self.back();
    bool transposed = r.flag("transpose"), unit = r.flag("unitriangular");
    bool forward = r.flag("upper") == transposed;  // the system as it is solved is a lower one
    for (int64_t b = 0; b < s.batch.product(); ++b) {
        const Complex* m = a.data() + b * n * n;
        Complex* y = x.data() + b * n * k;
        auto element = [&](int64_t i, int64_t j) { return transposed ? m[j * n + i] : m[i * n + j]; };
        for (int64_t step = 0; step < n; ++step) {
            int64_t i = forward ? step : n - 1 - step;
            for (int64_t c = 0; c < k; ++c) {
                Complex sum = y[i * k + c];
                for (int64_t j = forward ? 0 : i + 1; j < (forward ? i : n); ++j) sum -= element(i, j) * y[j * k + c];
                y[i * k + c] = unit ? sum : sum / element(i, i);
            }
        }
    }
    r.write(r.tensor("xOut"), x);
    r.write(r.tensor("mOut"), a);
}

}  // namespace

ACLNN(aclnnLinalgCholesky, PLAN {
    plan_square(p, "self");
    p.same_shape("self", "out");
    p.same_dtype("self", "out");
}, run_cholesky)
ACLNN(aclnnLinalgQr, PLAN { plan_qr(p, p.integer("mode")); }, RUN { run_qr(r, r.integer("mode")); })
ACLNN(aclnnQr, PLAN { plan_qr(p, p.flag("some") ? kReduced : kComplete); },
      RUN { run_qr(r, r.flag("some") ? kReduced : kComplete); })
ACLNN(aclnnSvd, plan_svd, run_svd)
ACLNN(aclnnSlogdet, plan_slogdet, run_slogdet)
ACLNN(aclnnLogdet, plan_logdet, run_logdet)
ACLNN(aclnnInverse, PLAN {
    plan_square(p, "self");
    p.same_shape("self", "out");
    p.casts(p.tensor("self").dtype, "out");
}, run_inverse)
ACLNN(aclnnTriangularSolve, plan_triangular, run_triangular)
