// Gradient of the attention loss (Li et al. 2024): the forward pass is flash2's, the gradients
// recompute the weights f from LSE. p = f o (c h^T - delta 1^T) has the shape of attention's dS
// with dO = c.
#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "cpu/kernels/kernel.hpp"
#include "cpu/kernels/tiles/running_softmax.hpp"
#include "cpu/kernels/tiles/score_tile.hpp"
#include "cpu/kernels/tiles/tensor_io.hpp"
#include "cpu/kernels/vectors/arithmetic.hpp"

namespace attest::cpu {
namespace {

constexpr std::int64_t kBlock = 64;

// A matrix as a (1, rows, 1, columns) tensor.
class MatrixTensor {
 public:
  explicit MatrixTensor(const attest_tensor& matrix)
      : shape_{1, matrix.shape[0], 1, matrix.shape[1]},
        strides_{0, matrix.strides[0], 0, matrix.strides[1]},
        tensor_(matrix) {
    tensor_.ndim = 4;
    tensor_.shape = shape_;
    tensor_.strides = strides_;
  }
  MatrixTensor(const MatrixTensor&) = delete;
  MatrixTensor& operator=(const MatrixTensor&) = delete;
  const attest_tensor& get() const { return tensor_; }

 private:
  std::int64_t shape_[4], strides_[4];
  attest_tensor tensor_;
};

// Matrices of the whole problem, shared by the threads; rows are packed.
struct Matrices {
  float *A1, *A2, *A3, *X, *Y;
  float *A2t, *ht;       // (head_dim, seqlen)
  float *QX, *h, *c;     // A1 X, A3 Y, f h - E
  float *W, *G;          // p A2, f^T c
  float *m, *l, *delta;  // m ends as LSE
  float *dX, *dY;

  Matrices(std::int64_t n, std::int64_t d, Arena arena) {
    for (float** tall : {&A1, &A2, &A3, &A2t, &ht, &QX, &h, &c, &W, &G}) *tall = arena.take(n * d);
    for (float** square : {&X, &Y, &dX, &dY}) *square = arena.take(d * d);
    for (float** column : {&m, &l, &delta}) *column = arena.take(n);
  }
};

std::size_t shared_floats(std::int64_t n, std::int64_t d) {
  return static_cast<std::size_t>(10 * n * d + 4 * d * d + 3 * n);
}

std::size_t thread_floats(std::int64_t d) {
  return static_cast<std::size_t>(2 * kBlock * kBlock + kBlock * d);
}

class Loss {
 public:
  Loss(const attest_loss_args& args, const Matrices& matrices, Arena arena)
      : args_(args),
        n_(args.problem->seqlen_q),
        d_(args.problem->head_dim_qk),
        at_(matrices),
        S_(arena.take(kBlock * kBlock)),
        q_(arena.take(kBlock * kBlock)),
        E_(arena.take(kBlock * d_)) {}

  std::int64_t blocks() const { return (n_ + kBlock - 1) / kBlock; }
  std::int64_t square_blocks() const { return (d_ + kBlock - 1) / kBlock; }

  void load_squares() {
    load(*args_.X, {0, 0, d_, 0}, at_.X);
    load(*args_.Y, {0, 0, d_, 0}, at_.Y);
  }

  // Rows of the inputs, A1 X, A3 Y and the two transposed operands.
  void prepare(std::int64_t block) {
    const RowBlock rows = rows_of(block);
    const std::int64_t offset = rows.first * d_;
    load(*args_.A1, rows, at_.A1 + offset);
    load(*args_.A2, rows, at_.A2 + offset);
    load(*args_.A3, rows, at_.A3 + offset);
    set_product(at_.QX + offset, d_, {at_.A1 + offset, d_, 1}, at_.X, d_, rows.count, d_, d_);
    set_product(at_.h + offset, d_, {at_.A3 + offset, d_, 1}, at_.Y, d_, rows.count, d_, d_);
    for (std::int64_t r = rows.first; r < rows.first + rows.count; ++r) {
      for (std::int64_t k = 0; k < d_; ++k) {
        at_.A2t[k * n_ + r] = at_.A2[r * d_ + k];
        at_.ht[k * n_ + r] = at_.h[r * d_ + k];
      }
    }
  }

  // LSE, c and delta of a block of rows.
  void forward(std::int64_t block) {
    const RowBlock rows = rows_of(block);
    float *m = at_.m + rows.first, *l = at_.l + rows.first, *c = at_.c + rows.first * d_;
    start_rows(rows.count, m, l);
    std::fill(c, c + rows.count * d_, 0.0f);
    for (std::int64_t other = 0; other < blocks(); ++other) {
      const RowBlock keys = rows_of(other);
      scores(rows, keys);
      update_rows(rows.count, keys.count, d_, S_, m, l, c);
      multiply_add(c, d_, {S_, keys.count, 1}, at_.h + keys.first * d_, d_, rows.count, d_,
                   keys.count);
    }
    finish_rows(rows.count, d_, m, l, c);
    load(*args_.E, rows, E_);
    for (std::int64_t r = 0; r < rows.count; ++r) {
      float *c_row = c + r * d_, *E_row = E_ + r * d_;
      for (std::int64_t k = 0; k < d_; ++k) {
        const float fh = c_row[k];
        c_row[k] = fh - E_row[k];
        E_row[k] = fh;
      }
      at_.delta[rows.first + r] = dot(c_row, E_row, d_);
    }
  }

  // Rows of W = p A2.
  void row_gradient(std::int64_t block) {
    const RowBlock rows = rows_of(block);
    float* W = at_.W + rows.first * d_;
    std::fill(W, W + rows.count * d_, 0.0f);
    for (std::int64_t other = 0; other < blocks(); ++other) {
      const RowBlock keys = rows_of(other);
      weights(rows, keys);
      set_product(q_, keys.count, {at_.c + rows.first * d_, d_, 1}, at_.ht + keys.first, n_,
                  rows.count, keys.count, d_);
      score_gradients(S_, nullptr, at_.delta + rows.first, rows.count, keys.count, q_);
      multiply_add(W, d_, {q_, keys.count, 1}, at_.A2 + keys.first * d_, d_, rows.count, d_,
                   keys.count);
    }
  }

  // Rows of G = f^T c.
  void key_gradient(std::int64_t block) {
    const RowBlock keys = rows_of(block);
    float* G = at_.G + keys.first * d_;
    std::fill(G, G + keys.count * d_, 0.0f);
    for (std::int64_t other = 0; other < blocks(); ++other) {
      const RowBlock rows = rows_of(other);
      weights(rows, keys);
      multiply_add(G, d_, {S_, 1, keys.count}, at_.c + rows.first * d_, d_, keys.count, d_,
                   rows.count);
    }
  }

  // A block of rows of dX = A1^T W and of dY = A3^T G.
  void store_squares(std::int64_t block) {
    const std::int64_t first = block * kBlock, count = std::min(kBlock, d_ - first);
    float *dX = at_.dX + first * d_, *dY = at_.dY + first * d_;
    set_product(dX, d_, {at_.A1 + first, 1, d_}, at_.W, d_, count, d_, n_);
    set_product(dY, d_, {at_.A3 + first, 1, d_}, at_.G, d_, count, d_, n_);
    store_rows(MatrixTensor(*args_.dX).get(), {0, first, count, 0}, dX);
    store_rows(MatrixTensor(*args_.dY).get(), {0, first, count, 0}, dY);
  }

 private:
  RowBlock rows_of(std::int64_t block) const {
    return {0, block * kBlock, std::min(kBlock, n_ - block * kBlock), 0};
  }

  static void load(const attest_tensor& matrix, const RowBlock& rows, float* tile) {
    load_rows(MatrixTensor(matrix).get(), rows, tile);
  }

  static void set_product(float* C, std::int64_t ldc, const Strided& A, const float* B,
                          std::int64_t ldb, std::int64_t m, std::int64_t n, std::int64_t k) {
    for (std::int64_t i = 0; i < m; ++i) std::fill(C + i * ldc, C + i * ldc + n, 0.0f);
    multiply_add(C, ldc, A, B, ldb, m, n, k);
  }

  void scores(const RowBlock& rows, const RowBlock& keys) {
    set_product(S_, keys.count, {at_.QX + rows.first * d_, d_, 1}, at_.A2t + keys.first, n_,
                rows.count, keys.count, d_);
  }

  void weights(const RowBlock& rows, const RowBlock& keys) {
    scores(rows, keys);
    probabilities(at_.m + rows.first, rows.count, keys.count, S_);
  }

  const attest_loss_args& args_;
  std::int64_t n_, d_;
  Matrices at_;
  float *S_, *q_, *E_;
};

bool claimed(const attest_problem& p) {
  return p.dtype == ATTEST_F32 && p.batch == 1 && p.num_heads_q == 1 && p.num_heads_kv == 1 &&
         p.seqlen_q == p.seqlen_k && p.head_dim_qk == p.head_dim_v;
}

std::size_t workspace_bytes(const void*, const attest_problem* problem, std::uint32_t) {
  const std::int64_t n = problem->seqlen_q, d = problem->head_dim_qk;
  return sizeof(float) *
         (shared_floats(n, d) +
          thread_floats(d) * static_cast<std::size_t>(std::max(problem->num_threads, 1)));
}

attest_status loss_gradient(const void*, const attest_loss_args* args) {
  const attest_problem& problem = *args->problem;
  if (!claimed(problem)) return ATTEST_UNSUPPORTED;
  const std::int64_t n = problem.seqlen_q, d = problem.head_dim_qk;
  const Matrices matrices(n, d, Arena(args->workspace, 0, 0));
  float* const tiles = static_cast<float*>(args->workspace) + shared_floats(n, d);
#pragma omp parallel num_threads(problem.num_threads)
  {
    Loss loss(*args, matrices, Arena(tiles, thread_floats(d), omp_get_thread_num()));
#pragma omp single
    loss.load_squares();
#pragma omp for schedule(static)
    for (std::int64_t block = 0; block < loss.blocks(); ++block) loss.prepare(block);
#pragma omp for schedule(dynamic)
    for (std::int64_t block = 0; block < loss.blocks(); ++block) loss.forward(block);
#pragma omp for schedule(dynamic) nowait
    for (std::int64_t block = 0; block < loss.blocks(); ++block) loss.row_gradient(block);
#pragma omp for schedule(dynamic)
    for (std::int64_t block = 0; block < loss.blocks(); ++block) loss.key_gradient(block);
#pragma omp for schedule(static)
    for (std::int64_t block = 0; block < loss.square_blocks(); ++block) loss.store_squares(block);
  }
  return ATTEST_OK;
}

}  // namespace

const attest_kernel& loss_gradient_kernel() {
  static const attest_kernel kernel = [] {
    attest_kernel k{};
    k.struct_size = sizeof k;
    k.abi_version = ATTEST_ABI_VERSION;
    k.description =
        common_description("cpu/loss_gradient", "gradient of the attention loss, tiled", nullptr);
    k.description.directions = ATTEST_LOSS_GRADIENT;
    k.description.dtypes = 1u << ATTEST_F32;
    k.description.features = ATTEST_ANY_STRIDES | ATTEST_LOSS_DY | ATTEST_LAYOUT_BITS;
    k.workspace_bytes = workspace_bytes;
    k.loss_gradient = loss_gradient;
    return k;
  }();
  return kernel;
}

}  // namespace attest::cpu
