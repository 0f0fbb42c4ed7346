"""One sentence about each public operator, for `help()`: what it does, nothing about how to call it.

A name, two blanks, a sentence; `= other` makes a name another one's. In-place forms have no line of their own.
Invariant: a name has one line, and the text is first read when a public function is made.
"""

from __future__ import annotations

TEXT = """
abs  The absolute value of each element.
absolute  = abs
acos  The inverse cosine of each element, in radians.
acosh  The inverse hyperbolic cosine of each element.
adaptive_avg_pool1d  Means of windows chosen so that the result has the given length.
adaptive_max_pool1d  Maxima of windows chosen so that the result has the given length, and their places.
add  Adds `other`, multiplied by `alpha`, to each element.
addbmm  The sum of the products of two batches of matrices, plus a matrix.
addcdiv  Adds `value * tensor1 / tensor2`, element by element.
addcmul  Adds `value * tensor1 * tensor2`, element by element.
addmm  A matrix product, plus a matrix: `beta * input + alpha * (mat1 @ mat2)`.
addmv  A product of matrix and vector, plus a vector: `beta * input + alpha * (mat @ vec)`.
addr  The outer product of two vectors, plus a matrix: `beta * input + alpha * outer(vec1, vec2)`.
adjoint  The conjugate with the last two dimensions exchanged, as a view.
affine_grid_generator  The places at which an affine transformation samples an image.
alias_copy  A copy of the whole tensor.
all  Whether all elements, or all along the dimensions, are true.
allclose  Whether all elements of two tensors are close: `|input - other| <= atol + rtol * |other|`.
alpha_dropout  Dropout that keeps mean and variance, for self-normalizing networks.
amax  The largest elements along dimensions; equal ones share the gradient.
amin  The smallest elements along dimensions; equal ones share the gradient.
aminmax  The smallest and the largest element, along a dimension or of all.
angle  The angle of each complex element, in radians; of real ones 0 or pi.
any  Whether any element, or any along the dimensions, is true.
arccos  = acos
arccosh  = acosh
arcsin  = asin
arcsinh  = asinh
arctan  = atan
arctan2  = atan2
arctanh  = atanh
argmax  The places of the largest elements.
argmin  The places of the smallest elements.
argsort  The places of the elements in sorted order.
argwhere  The places of the elements that are not zero, one row for each.
as_strided  A view with the given shape, strides and offset in the same storage.
as_strided_copy  A copy of what `as_strided` shows.
as_strided_scatter  A copy in which the elements that `as_strided` shows are those of `src`.
asin  The inverse sine of each element, in radians.
asinh  The inverse hyperbolic sine of each element.
atan  The inverse tangent of each element, in radians.
atan2  The angle of the points (`other`, `input`), in radians, in the right quadrant.
atanh  The inverse hyperbolic tangent of each element.
avg_pool1d  The mean of each window over the last dimension.
baddbmm  Products of two batches of matrices, plus a batch: `beta * input + alpha * (batch1 @ batch2)`.
batch_norm  Normalizes each channel over the batch, or with given statistics.
batch_norm_backward_elemt  The gradient of a normalised input from the sums over all processes.
batch_norm_backward_reduce  The sums over a batch that the backward of batch normalization needs.
batch_norm_elemt  An input normalised by given statistics.
batch_norm_gather_stats  The statistics of all processes from those of each.
batch_norm_gather_stats_with_counts  The statistics of all processes from those of each and their counts.
batch_norm_stats  Mean and inverse deviation of each channel.
batch_norm_update_stats  Mean and variance of each channel, added to running statistics.
bilinear  A bilinear form of two inputs: `input1 @ weight @ input2 + bias`.
binary_cross_entropy_with_logits  The binary cross entropy of logits, computed without overflow.
bincount  How often each non-negative integer occurs.
binomial  Draws how many of the given trials succeed with the given probabilities.
bitwise_and  The bits that both operands have; for bool logical and.
bitwise_left_shift  Shifts the bits of each element to the left.
bitwise_not  Inverts the bits of each element; for bool logical not.
bitwise_or  The bits that either operand has; for bool logical or.
bitwise_right_shift  Shifts the bits of each element to the right, keeping the sign.
bitwise_xor  The bits in which the operands differ; for bool logical exclusive or.
block_diag  A matrix with the given matrices along its diagonal.
bmm  The products of two batches of matrices.
broadcast_to  A view of the given shape in which dimensions of size one are repeated.
bucketize  The index of the bucket each element falls into, given sorted boundaries.
cartesian_prod  All tuples of elements of several vectors.
cat  Joins tensors along an existing dimension.
ccol_indices_copy  A copy of the compressed column indices of a sparse tensor.
cdist  The distances between all pairs of rows of two batches.
ceil  The smallest integer not below each element.
celu  The continuously differentiable exponential linear unit.
chain_matmul  The product of several matrices, in the order that costs least.
channel_shuffle  Rearranges channels so that groups are mixed.
cholesky  The Cholesky factor of each positive definite matrix.
cholesky_inverse  Inverses of matrices, given their Cholesky factors.
cholesky_solve  Solves linear systems, given Cholesky factors of their matrices.
choose_qparams_optimized  = quantize_per_tensor
chunk  Splits into the given number of parts along a dimension, as views.
clamp  Limits each element to the range from `min` to `max`.
clamp_max  Limits each element from above.
clamp_min  Limits each element from below.
clip  = clamp
clone  A copy with memory of its own, through which gradients flow.
col_indices_copy  A copy of the column indices of a sparse tensor.
column_stack  Joins tensors as columns.
combinations  All combinations of `r` elements of a vector.
complex  Complex numbers from real and imaginary parts.
concat  = cat
concatenate  = cat
conj  The conjugate of each element, as a view that is resolved when needed.
conj_physical  The conjugate of each element, computed.
constant_pad_nd  Pads the last dimensions with a value.
contiguous  This tensor in the given memory format: itself if it is so already, else a copy.
conv1d  A convolution over signals with one dimension.
conv2d  A convolution over images.
conv3d  A convolution over volumes.
conv_tbc  Convolution over sequences laid out as (time, batch, channel).
conv_transpose1d  The transposed convolution over signals with one dimension.
conv_transpose2d  The transposed convolution over images.
conv_transpose3d  The transposed convolution over volumes.
convolution  A convolution of any rank, plain or transposed.
copysign  The magnitude of `input` with the sign of `other`.
corrcoef  The correlation coefficients of variables that are rows.
cos  The cosine of each element, in radians.
cosh  The hyperbolic cosine of each element.
cosine_embedding_loss  Pulls pairs with target 1 together by cosine and pushes pairs with target -1 apart.
cosine_similarity  The cosine of the angle between two tensors along a dimension.
count_nonzero  How many elements are not zero, along dimensions or in all.
cov  The covariances of variables that are rows.
cross  The cross product of vectors with three elements.
crow_indices_copy  A copy of the compressed row indices of a sparse tensor.
ctc_loss  The loss of connectionist temporal classification.
cudnn_affine_grid_generator  = cudnn_batch_norm
cudnn_batch_norm  Of cuDNN, which is not here: refuses.
cudnn_convolution  = cudnn_batch_norm
cudnn_convolution_add_relu  = cudnn_batch_norm
cudnn_convolution_relu  = cudnn_batch_norm
cudnn_convolution_transpose  = cudnn_batch_norm
cudnn_grid_sampler  = cudnn_batch_norm
cudnn_is_acceptable  Whether cuDNN would serve this tensor: never, it is not here.
cummax  The running maximum along a dimension, and where it is.
cummin  The running minimum along a dimension, and where it is.
cumprod  The running product along a dimension.
cumsum  The running sum along a dimension.
cumulative_trapezoid  The running integral along a dimension by the trapezoidal rule.
deg2rad  Degrees to radians.
dequantize  The values of a quantized tensor.
det  The determinant of each matrix.
detach  A view without history: gradients stop here.
detach_copy  A copy without history.
diag  The diagonal of a matrix, or a matrix with the given diagonal.
diag_embed  Matrices whose diagonals are the last dimension.
diagflat  A matrix whose diagonal is the flattened input.
diagonal  A view of the diagonals of two dimensions.
diagonal_backward  The gradient of `diagonal`.
diagonal_copy  A copy of what `diagonal` shows.
diagonal_scatter  A copy in which the diagonal is `src`.
diff  Differences of neighbours along a dimension, `n` times.
digamma  The derivative of the logarithm of the gamma function.
dist  The p-norm of the difference of two tensors.
div  Divides element by element; `rounding_mode` makes it integer division.
divide  = div
dot  The dot product of two vectors.
dropout  Sets elements to zero at random and scales the others.
dsplit  Splits along the third dimension, as views.
dstack  Joins tensors along the third dimension.
elu  The exponential linear unit.
embedding  The rows of a table at the given indices.
embedding_bag  Sums, means or maxima of rows of a table, bag by bag.
empty_quantized  = quantize_per_tensor
eq  Whether elements are equal.
equal  Whether two tensors have the same shape and elements: one bool.
erf  The error function.
erfc  One minus the error function, precise where that is small.
erfinv  The inverse of the error function.
exp  The exponential of each element.
exp2  Two to the power of each element.
expand  A view in which dimensions of size one are repeated.
expand_as  A view expanded to the shape of another tensor.
expand_copy  A copy of what `expand` shows.
expm1  The exponential minus one, precise near zero.
fake_quantize_per_channel_affine  Rounds values to what a few bits could hold with a scale for each channel.
fake_quantize_per_tensor_affine  Rounds values to what a few bits could hold with one scale.
fbgemm_linear_fp16_weight  = fbgemm_pack_quantized_matrix
fbgemm_linear_fp16_weight_fp32_activation  = fbgemm_pack_quantized_matrix
fbgemm_linear_int8_weight  = fbgemm_pack_quantized_matrix
fbgemm_linear_int8_weight_fp32_activation  = fbgemm_pack_quantized_matrix
fbgemm_linear_quantize_weight  = fbgemm_pack_quantized_matrix
fbgemm_pack_gemm_matrix_fp16  = fbgemm_pack_quantized_matrix
fbgemm_pack_quantized_matrix  Of FBGEMM, which is not here: refuses.
feature_alpha_dropout  Alpha dropout of whole channels.
feature_dropout  Dropout of whole channels.
fft_fft  The discrete Fourier transform along a dimension.
fft_fft2  The discrete Fourier transform over two dimensions.
fft_fftfreq  The frequencies of the bins of a Fourier transform.
fft_fftn  The discrete Fourier transform over several dimensions.
fft_fftshift  Moves the zero frequency to the middle.
fft_hfft  The Fourier transform of a signal that is Hermitian in time.
fft_hfft2  The Fourier transform of a signal that is Hermitian in time, over two dimensions.
fft_hfftn  The Fourier transform of a signal that is Hermitian in time, over several dimensions.
fft_ifft  The inverse of `fft`.
fft_ifft2  The inverse of `fft2`.
fft_ifftn  The inverse of `fftn`.
fft_ifftshift  The inverse of `fftshift`.
fft_ihfft  The inverse of `hfft`.
fft_ihfft2  The inverse of `hfft2`.
fft_ihfftn  The inverse of `hfftn`.
fft_irfft  The inverse of `rfft`.
fft_irfft2  The inverse of `rfft2`.
fft_irfftn  The inverse of `rfftn`.
fft_rfft  The Fourier transform of a real signal: its non-negative frequencies.
fft_rfft2  The Fourier transform of a real signal over two dimensions.
fft_rfftfreq  The frequencies of the bins of `rfft`.
fft_rfftn  The Fourier transform of a real signal over several dimensions.
fill  A tensor of this shape filled with a value.
fill_diagonal_  Writes a number on the main diagonal, in place; with `wrap` it begins again in tall matrices.
fix  = trunc
flatten  Joins neighbouring dimensions into one.
flip  Reverses the order of elements along dimensions.
fliplr  Reverses the second dimension.
flipud  Reverses the first dimension.
float_power  Powers computed in double precision.
floor  The largest integer not above each element.
floor_divide  Division rounded towards minus infinity.
fmax  The larger of two elements, ignoring NaN where there is one number.
fmin  The smaller of two elements, ignoring NaN where there is one number.
fmod  The remainder of division, with the sign of the dividend.
frac  The fractional part of each element.
frexp  Mantissa and exponent of each element.
frobenius_norm  Root of the sum of squares over dimensions; deprecated, use `linalg.vector_norm`.
fused_moving_avg_obs_fake_quant  Rounds to what a few bits could hold, with a scale by the range seen so far.
gather  Picks elements along a dimension by index.
gcd  The greatest common divisor.
ge  Whether elements are at least as large as `other`.
geqrf  The QR factorization of each matrix in LAPACK's packed form.
ger  = outer
gradient  Differences at each point, of second order inside, along dimensions.
greater  = gt
greater_equal  = ge
grid_sampler  Samples images or volumes at given places.
grid_sampler_2d  Samples images at given places.
grid_sampler_3d  Samples volumes at given places.
group_norm  Normalizes groups of channels of each sample.
gru  A layer of gated recurrent units over a sequence.
gru_cell  One step of gated recurrent units.
gt  Whether elements are larger than `other`.
hardshrink  Sets elements of magnitude at most `lambd` to zero.
hash_tensor  A checksum: the exclusive or of the elements as 64-bit numbers.
heaviside  The step function: 0 below zero, 1 above, and `values` at zero.
hinge_embedding_loss  Pulls elements with target 1 to zero and pushes those with target -1 beyond a margin.
histc  Counts elements in equal bins between two bounds.
histogram  Counts, or weighs, elements in bins, and says where the bins end.
histogramdd  Counts the points in each cell of a grid, and the edges of the cells.
hsplit  Splits along the second dimension (the first of a vector), as views.
hstack  Joins tensors along the second dimension (the first of vectors).
hypot  The length of vectors with the given sides.
i0  The modified Bessel function of the first kind, order 0.
igamma  The regularized lower incomplete gamma function.
igammac  The regularized upper incomplete gamma function.
imag  A view of the imaginary parts.
index_add  Adds `source`, scaled by `alpha`, to the slices at the given indices.
index_copy  Replaces the slices at the given indices by those of `source`.
index_fill  Fills the slices at the given indices with a value.
index_reduce  Reduces `source` into the slices at the given indices.
index_select  The slices at the given indices along a dimension.
indices_copy  A copy of the indices of a sparse tensor.
inner  Products of vectors in the last dimensions, all with all.
instance_norm  Normalizes each channel of each sample.
int_repr  = quantize_per_tensor
inverse  = linalg_inv
is_complex  Whether the dtype is complex.
is_conj  Whether the tensor is a conjugate that was not computed yet.
is_floating_point  Whether the dtype is a floating-point one.
is_neg  Whether the tensor is a negation that was not computed yet.
is_nonzero  Whether the only element is not zero.
isclose  Whether elements are close: `|input - other| <= atol + rtol * |other|`.
isfinite  Whether elements are neither infinite nor NaN.
isin  Whether elements occur among the test elements.
isinf  Whether elements are infinite.
isnan  Whether elements are NaN.
isneginf  Whether elements are minus infinity.
isposinf  Whether elements are plus infinity.
isreal  Whether the imaginary part of each element is zero.
istft  The signal of which `stft` gave the transform.
kl_div  The Kullback-Leibler divergence, given logarithms of probabilities.
kron  The Kronecker product.
kthvalue  The k-th smallest element along a dimension, and where it is.
layer_norm  Normalizes over the last dimensions, with optional weight and bias.
lcm  The least common multiple.
ldexp  Multiplies by two to the power of `other`.
le  Whether elements are at most as large as `other`.
lerp  Goes from `input` to `end` by the share `weight`.
less  = lt
less_equal  = le
lgamma  The logarithm of the absolute value of the gamma function.
linalg_cholesky  The Cholesky factor of each positive definite matrix.
linalg_cholesky_ex  The Cholesky factor, and where the factorization failed instead of an error.
linalg_cond  The condition number of each matrix.
linalg_cross  The cross product of vectors with three elements.
linalg_det  The determinant of each matrix.
linalg_diagonal  A view of the diagonals, by default of the last two dimensions.
linalg_eig  Eigenvalues and eigenvectors of each matrix.
linalg_eigh  Eigenvalues, ascending, and eigenvectors of each Hermitian matrix.
linalg_eigvals  Eigenvalues of each matrix.
linalg_eigvalsh  Eigenvalues, ascending, of each Hermitian matrix.
linalg_householder_product  The product of Householder reflections.
linalg_inv  The inverse of each matrix.
linalg_inv_ex  The inverse, and where a matrix was singular instead of an error.
linalg_ldl_factor  The LDL factorization of each Hermitian matrix.
linalg_ldl_factor_ex  The LDL factorization, and where it failed instead of an error.
linalg_ldl_solve  Solves linear systems, given LDL factorizations.
linalg_lstsq  Least-squares solutions of linear systems.
linalg_lu  The factors P, L and U of each matrix.
linalg_lu_factor  The LU factorization of each matrix in packed form, and the pivots.
linalg_lu_factor_ex  The LU factorization, and where it failed instead of an error.
linalg_lu_solve  Solves linear systems, given packed LU factorizations.
linalg_matmul  = matmul
linalg_matrix_exp  The exponential of each matrix.
linalg_matrix_norm  The norm of each matrix.
linalg_matrix_power  Each matrix to an integer power.
linalg_matrix_rank  How many singular values of each matrix exceed a tolerance.
linalg_multi_dot  The product of several matrices, in the order that costs least.
linalg_norm  The norm of vectors or matrices.
linalg_pinv  The pseudo-inverse of each matrix.
linalg_qr  The QR factorization of each matrix.
linalg_slogdet  The sign and the logarithm of the magnitude of each determinant.
linalg_solve  Solves linear systems.
linalg_solve_ex  Solves linear systems, and says where a matrix was singular instead of an error.
linalg_solve_triangular  Solves triangular linear systems.
linalg_svd  Singular values, descending, and singular vectors of each matrix.
linalg_svdvals  Singular values of each matrix, descending.
linalg_tensorinv  The inverse of a tensor with respect to `tensordot`.
linalg_tensorsolve  Solves `tensordot(A, X) = B`.
linalg_vander  The matrix of powers of each vector.
linalg_vecdot  The dot product of vectors along a dimension, the first conjugated.
linalg_vector_norm  The norm of vectors, along dimensions or of all elements.
linear  A linear map: `input @ weight.T + bias`.
log  The natural logarithm of each element.
log10  The logarithm to base 10 of each element.
log1p  The logarithm of one plus each element, precise near zero.
log2  The logarithm to base 2 of each element.
log_softmax  The logarithm of the softmax along a dimension.
logaddexp  The logarithm of the sum of exponentials of two operands.
logaddexp2  The same as `logaddexp`, in base 2.
logcumsumexp  The logarithm of the running sum of exponentials along a dimension.
logdet  The logarithm of the determinant of each matrix.
logical_and  Whether both elements are true.
logical_not  Whether elements are false.
logical_or  Whether one of the elements is true.
logical_xor  Whether exactly one of the elements is true.
logit  The logarithm of the odds, the inverse of the sigmoid.
logsumexp  The logarithm of the sum of exponentials along dimensions.
lshift  Shifts the bits of each element to the left.
lstm  A layer of long short-term memory over a sequence.
lstm_cell  One step of a long short-term memory.
lt  Whether elements are smaller than `other`.
lu_solve  Solves linear systems with an LU factorization.
lu_unpack  The factors P, L and U, given a packed LU factorization.
margin_ranking_loss  Asks the first input to be larger by a margin where the target is 1, smaller where it is -1.
masked_fill  Puts a value where the mask is true.
masked_scatter  Puts the elements of `source`, in order, where the mask is true.
masked_select  The elements where the mask is true, in one dimension.
matmul  The product of matrices, vectors and batches of them.
matrix_exp  The exponential of each matrix.
matrix_power  Each matrix to an integer power.
max  The largest element; along a dimension also its place; of two tensors element by element.
max_pool1d  The maximum of each window over the last dimension.
max_pool1d_with_indices  The largest of each window, and where it stands.
max_pool2d  The maximum of each window over images.
max_pool3d  The maximum of each window over volumes.
maximum  The larger of two elements.
mean  The mean of all elements, or along dimensions.
median  The median; along a dimension also its place. Of an even number the lower one.
min  The smallest element; along a dimension also its place; of two tensors element by element.
minimum  The smaller of two elements.
miopen_batch_norm  Of MIOpen, which is not here: refuses.
miopen_convolution  = miopen_batch_norm
miopen_convolution_add_relu  = miopen_batch_norm
miopen_convolution_relu  = miopen_batch_norm
miopen_convolution_transpose  = miopen_batch_norm
miopen_ctc_loss  = miopen_batch_norm
miopen_depthwise_convolution  = miopen_batch_norm
miopen_rnn  = miopen_batch_norm
mkldnn_adaptive_avg_pool2d  = mkldnn_convolution
mkldnn_convolution  Of oneDNN, which is not here: refuses.
mkldnn_linear_backward_weights  = mkldnn_convolution
mkldnn_max_pool2d  = mkldnn_convolution
mkldnn_max_pool3d  = mkldnn_convolution
mkldnn_rnn_layer  = mkldnn_convolution
mm  The product of two matrices.
mode  The most frequent element along a dimension, and where it is.
moveaxis  = movedim
movedim  Moves dimensions to other places, as a view.
msort  Sorts along the first dimension.
mul  Multiplies element by element.
multinomial  Draws indices with probability proportional to the given weights.
multiply  = mul
mv  The product of a matrix and a vector.
mvlgamma  The logarithm of the multivariate gamma function.
nan_to_num  Replaces NaN and infinities by numbers.
nanmean  The mean of the elements that are not NaN.
nanmedian  The median of the elements that are not NaN.
nanquantile  Quantiles of the elements that are not NaN.
nansum  The sum of the elements that are not NaN.
narrow  A view of `length` entries of a dimension from `start` on.
narrow_copy  A copy of what `narrow` shows.
native_batch_norm  Batch normalization with the statistics it used.
native_channel_shuffle  Rearranges channels so that groups are mixed.
native_dropout  Dropout, and the mask that it used.
native_group_norm  Group normalization with the statistics it used.
native_layer_norm  Layer normalization with the statistics it used.
native_norm  The p-norm of all elements.
ne  Whether elements are unequal.
neg  Each element with the opposite sign.
negative  = neg
nextafter  The next number after each element in the direction of `other`.
nonzero  The places of the elements that are not zero, one row for each.
nonzero_static  The places of the elements that are not zero, cut or filled to a given number.
norm  The norm of a tensor, along dimensions or of all elements.
norm_except_dim  The norm over all dimensions but one.
not_equal  = ne
nuclear_norm  Sum of the singular values; deprecated, use `linalg.matrix_norm`.
orgqr  = linalg_householder_product
ormqr  Multiplies by the orthogonal matrix of a packed QR factorization.
outer  All products of elements of two vectors.
pairwise_distance  The distance between the rows of two tensors, pair by pair.
pdist  The distances between all pairs of rows of a matrix.
permute  The dimensions in another order, as a view.
permute_copy  A copy of what `permute` shows.
pinverse  = linalg_pinv
pixel_shuffle  Moves channels into space: `r * r` channels become blocks of pixels.
pixel_unshuffle  Moves space into channels, the inverse of `pixel_shuffle`.
poisson  Draws from Poisson distributions with the given rates.
poisson_nll_loss  The negative log likelihood of Poisson distributed targets.
polar  Complex numbers from magnitudes and angles.
polygamma  The n-th derivative of the digamma function.
positive  The tensor itself; refused for bool.
pow  Each element to a power.
prelu  The rectified linear unit with a learnt slope below zero.
prod  The product of all elements, or along a dimension.
put  Puts values at places counted over the flattened tensor.
q_per_channel_axis  = quantize_per_tensor
q_per_channel_scales  = quantize_per_tensor
q_per_channel_zero_points  = quantize_per_tensor
q_scale  = quantize_per_tensor
q_zero_point  = quantize_per_tensor
qr  The QR factorization of each matrix.
qscheme  = quantize_per_tensor
quantile  Quantiles of all elements, or along a dimension.
quantize_per_channel  = quantize_per_tensor
quantize_per_tensor  Of quantized tensors, which are not here: refuses.
quantize_per_tensor_dynamic  = quantize_per_tensor
quantized_batch_norm  = quantize_per_tensor
quantized_gru_cell  = quantize_per_tensor
quantized_lstm_cell  = quantize_per_tensor
quantized_max_pool1d  = quantize_per_tensor
quantized_max_pool2d  = quantize_per_tensor
quantized_max_pool3d  = quantize_per_tensor
quantized_rnn_relu_cell  = quantize_per_tensor
quantized_rnn_tanh_cell  = quantize_per_tensor
rad2deg  Radians to degrees.
ravel  All elements in one dimension; a view where that is possible.
real  A view of the real parts.
reciprocal  One divided by each element.
relu  Each element, or zero if that is larger.
remainder  The remainder of division, with the sign of the divisor.
renorm  Scales slices whose norm is above a limit down to it.
repeat  The tensor repeated along each dimension, copied.
repeat_interleave  Each element, or slice, repeated.
reshape  The same elements in another shape; a view where that is possible.
reshape_as  The same elements in the shape of another tensor.
resolve_conj  The tensor with a pending conjugation computed.
resolve_neg  The tensor with a pending negation computed.
rms_norm  Divides by the root of the mean square over the last dimensions.
rnn_relu  A layer of recurrent units with ReLU over a sequence.
rnn_relu_cell  One step of recurrent units with ReLU.
rnn_tanh  A layer of recurrent units with tanh over a sequence.
rnn_tanh_cell  One step of recurrent units with tanh.
roll  Shifts elements along dimensions; what leaves at one end enters at the other.
rot90  Turns by quarter turns in the plane of two dimensions.
round  Each element rounded to the nearest integer, halves to even; or to `decimals` places.
row_indices_copy  A copy of the row indices of a sparse tensor.
row_stack  = vstack
rrelu  The rectified linear unit with a random slope below zero.
rshift  Shifts the bits of each element to the right.
rsqrt  One divided by the square root of each element.
rsub  Subtracts `input`, multiplied by `alpha`, from `other`.
scatter  Puts values at the given indices along a dimension.
scatter_add  Adds values at the given indices along a dimension.
scatter_reduce  Reduces values into the given indices along a dimension.
searchsorted  Where values would be put into sorted sequences.
segment_reduce  Reduces neighbours along a dimension, as many as the lengths say.
select  A view of one entry of a dimension, which goes away.
select_backward  The gradient of `select`.
select_copy  A copy of what `select` shows.
select_scatter  A copy in which one entry of a dimension is `src`.
selu  The scaled exponential linear unit.
sgn  The sign of each element; of complex ones the direction.
sigmoid  The logistic function of each element.
sign  The sign of each element: -1, 0 or 1.
signbit  Whether the sign bit of each element is set.
sin  The sine of each element, in radians.
sinc  The normalized cardinal sine of each element.
sinh  The hyperbolic sine of each element.
slice_backward  The gradient of slicing.
slice_copy  A copy of a slice.
slice_inverse  The inverse of slicing.
slice_scatter  A copy in which a slice is `src`.
slogdet  The sign and the logarithm of the magnitude of the determinant.
softmax  Exponentials divided by their sum along a dimension.
sort  The elements in order along a dimension, and where they were.
special_airy_ai  The Airy function.
special_bessel_j0  The Bessel function of the first kind, order 0.
special_bessel_j1  The Bessel function of the first kind, order 1.
special_bessel_y0  The Bessel function of the second kind, order 0.
special_bessel_y1  The Bessel function of the second kind, order 1.
special_chebyshev_polynomial_t  Chebyshev polynomials of the first kind.
special_chebyshev_polynomial_u  Chebyshev polynomials of the second kind.
special_chebyshev_polynomial_v  Chebyshev polynomials of the third kind.
special_chebyshev_polynomial_w  Chebyshev polynomials of the fourth kind.
special_digamma  = digamma
special_entr  The entropy of each element: `-x * log(x)`.
special_erf  = erf
special_erfc  = erfc
special_erfcx  The scaled complementary error function: `exp(x * x) * erfc(x)`.
special_erfinv  = erfinv
special_exp2  = exp2
special_expit  = sigmoid
special_expm1  = expm1
special_gammainc  = igamma
special_gammaincc  = igammac
special_gammaln  = lgamma
special_hermite_polynomial_h  Hermite polynomials as physicists define them.
special_hermite_polynomial_he  Hermite polynomials as probabilists define them.
special_i0  = i0
special_i0e  The modified Bessel function of order 0, scaled by `exp(-|x|)`.
special_i1  The modified Bessel function of the first kind, order 1.
special_i1e  The modified Bessel function of order 1, scaled by `exp(-|x|)`.
special_laguerre_polynomial_l  Laguerre polynomials.
special_legendre_polynomial_p  Legendre polynomials.
special_log1p  = log1p
special_log_ndtr  The logarithm of the area under the normal distribution below each element.
special_log_softmax  = log_softmax
special_logit  = logit
special_logsumexp  = logsumexp
special_modified_bessel_i0  The modified Bessel function of the first kind, order 0.
special_modified_bessel_i1  The modified Bessel function of the first kind, order 1.
special_modified_bessel_k0  The modified Bessel function of the second kind, order 0.
special_modified_bessel_k1  The modified Bessel function of the second kind, order 1.
special_multigammaln  = mvlgamma
special_ndtr  The area under the normal distribution below each element.
special_ndtri  The inverse of `ndtr`: the place below which the area is each element.
special_polygamma  = polygamma
special_psi  = digamma
special_round  = round
special_scaled_modified_bessel_k0  The modified Bessel function of the second kind, order 0, times `exp(x)`.
special_scaled_modified_bessel_k1  The modified Bessel function of the second kind, order 1, times `exp(x)`.
special_shifted_chebyshev_polynomial_t  Chebyshev polynomials of the first kind on the interval from 0 to 1.
special_shifted_chebyshev_polynomial_u  Chebyshev polynomials of the second kind on the interval from 0 to 1.
special_shifted_chebyshev_polynomial_v  Chebyshev polynomials of the third kind on the interval from 0 to 1.
special_shifted_chebyshev_polynomial_w  Chebyshev polynomials of the fourth kind on the interval from 0 to 1.
special_sinc  = sinc
special_softmax  = softmax
special_spherical_bessel_j0  The spherical Bessel function of the first kind, order 0.
special_xlog1py  `input * log1p(other)`, zero where `input` is.
special_xlogy  = xlogy
special_zeta  The Hurwitz zeta function.
split_copy  Copies of the parts that `split` shows.
split_with_sizes  Splits into parts of the given sizes, as views.
split_with_sizes_copy  Copies of the parts that `split_with_sizes` shows.
sqrt  The square root of each element.
square  The square of each element.
squeeze  A view without dimensions of size one.
squeeze_copy  A copy of what `squeeze` shows.
stack  Joins tensors along a new dimension.
std  The standard deviation of all elements, or along dimensions.
std_mean  The standard deviation and the mean.
stft  The Fourier transform of overlapping windows of a signal.
sub  Subtracts `other`, multiplied by `alpha`.
subtract  = sub
sum  The sum of all elements, or along dimensions.
sum_to_size  The sum over the dimensions that broadcasting from the given shape had added.
svd  Singular values and vectors of each matrix.
swapaxes  = transpose
swapdims  = transpose
t  The transpose of a matrix, as a view; vectors stay as they are.
t_copy  A copy of what `t` shows.
take  The elements at places counted over the flattened tensor.
take_along_dim  Picks elements along a dimension by index, broadcasting the indices.
tan  The tangent of each element, in radians.
tanh  The hyperbolic tangent of each element.
tensor_split  Splits into parts that need not be equal, as views.
threshold  Replaces elements that do not exceed a threshold by a value.
tile  The tensor repeated along its dimensions, counted from the last.
to_mkldnn  = mkldnn_convolution
to_padded_tensor  Of nested tensors as PyTorch stores them, which are not here: refuses.
topk  The `k` largest (or smallest) elements along a dimension, and where they are.
trace  The sum of the diagonal of a matrix.
transpose  Exchanges two dimensions, as a view.
transpose_copy  A copy of what `transpose` shows.
trapezoid  The integral along a dimension by the trapezoidal rule.
trapz  = trapezoid
triangular_solve  Solves triangular linear systems.
tril  The lower triangle of matrices; the rest is zero.
triplet_margin_loss  Asks the anchor to be nearer to the positive than to the negative by a margin.
triu  The upper triangle of matrices; the rest is zero.
true_divide  = div
trunc  Each element without its fraction.
unbind  Views of the entries of a dimension, which goes away.
unbind_copy  Copies of the entries of a dimension.
unflatten  Splits one dimension into several, as a view.
unfold  A view of all windows of a size along a dimension, as a new last one.
unfold_backward  The gradient of `unfold`.
unfold_copy  A copy of what `unfold` shows.
unique_consecutive  The elements without repeated neighbours.
unique_dim  The distinct slices along a dimension.
unravel_index  Places counted over the flattened tensor as indices in each dimension.
unsafe_chunk  Like `chunk`, without tracking that the parts share memory.
unsafe_split  Like `split`, without tracking that the parts share memory.
unsafe_split_with_sizes  Like `split_with_sizes`, without tracking that the parts share memory.
unsqueeze  A view with a new dimension of size one.
unsqueeze_copy  A copy of what `unsqueeze` shows.
values_copy  A copy of the values of a sparse tensor.
vander  The matrix of powers of a vector.
var  The variance of all elements, or along dimensions.
var_mean  The variance and the mean.
vdot  The dot product of two vectors, the first conjugated.
view  The same memory in another shape, or as another dtype.
view_as  The same memory in the shape of another tensor.
view_as_complex  Pairs of real numbers seen as complex ones.
view_as_complex_copy  A copy of what `view_as_complex` shows.
view_as_real  Complex numbers seen as pairs of real ones.
view_as_real_copy  A copy of what `view_as_real` shows.
view_copy  A copy of what `view` shows.
vsplit  Splits along the first dimension, as views.
vstack  Joins tensors along the first dimension, vectors as rows.
where  Elements of `input` where the condition is true, else of `other`.
xlogy  `input * log(other)`, zero where `input` is.
"""

_BY_NAME: dict[str, str] = {}


def sentence(name: str) -> str:
    """What is said about `name`, or nothing."""
    if not _BY_NAME:
        for line in TEXT.strip().split("\n"):
            key, _, said = line.partition("  ")
            _BY_NAME[key] = said
    found = _BY_NAME.get(name, "")
    return f"Another name of `{found[2:]}`. {sentence(found[2:])}" if found.startswith("= ") else found
