#include "schedules/loss/loss.hpp"

#include <algorithm>
#include <cstddef>

#include "core/error.hpp"

namespace attest::schedules {
namespace {

// Everything is float32: the loss gradient has no 16-bit form.
io::Traffic words(io::Words reads, io::Words writes, io::Words peak) {
  return {HeadShape::real(reads), HeadShape::real(writes), HeadShape::real(peak)};
}

// A matrix tensor of rank 2.
io::MutableSlowMatrix matrix(const char* name, const attest_tensor* tensor, std::int64_t rows,
                             std::int64_t columns) {
  if (tensor == nullptr) return {name, rows, columns, DType::f32, nullptr, columns};
  std::byte* data = static_cast<std::byte*>(tensor->data) + tensor->byte_offset;
  return {name, rows, columns, DType::f32, data, tensor->strides[0], tensor->strides[1]};
}

}  // namespace

LossHead loss_head(const attest_loss_args& args) {
  const std::int64_t n = args.problem->seqlen_q, d = args.problem->head_dim_qk;
  auto plain = std::make_shared<attest_problem>();
  plain->struct_size = sizeof(attest_problem);
  plain->batch = plain->num_heads_q = plain->num_heads_kv = 1;
  plain->seqlen_q = plain->seqlen_k = n;
  plain->head_dim_qk = plain->head_dim_v = d;
  plain->dtype = ATTEST_F32;
  plain->softmax_scale = 1;
  plain->mask.window_left = plain->mask.window_right = -1;
  return {matrix("A1", args.A1, n, d),
          matrix("A2", args.A2, n, d),
          matrix("A3", args.A3, n, d),
          matrix("E", args.E, n, d),
          matrix("X", args.X, d, d),
          matrix("Y", args.Y, d, d),
          matrix("dX", args.dX, d, d),
          plain,
          {plain.get(), batch_of(*plain, 0), 0}};
}

void require_countable_loss(const attest_problem& problem) {
  const bool countable = problem.dtype == ATTEST_F32 && problem.batch == 1 &&
                         problem.num_heads_q == 1 && problem.num_heads_kv == 1 &&
                         problem.seqlen_q == problem.seqlen_k && problem.seqlen_q > 0 &&
                         problem.head_dim_qk == problem.head_dim_v;
  if (countable) return;
  throw InvalidProblem(
      "problem: the loss gradient needs b=1, hq=hkv=1, sq=sk, sq>=1, dv=d and dtype=f32");
}

io::Traffic LossResidual::cost(const LossHead& head) const {
  const io::Words n = head.n(), d = head.d(), i = std::min(n, io::Words(rows));
  return words(2 * n * d + io::tiles(head.n(), rows) * (2 * n * d), n * d + 2 * n,
               i * (2 * d + 3) + 1);
}

io::Traffic WeighedKeys::cost(const LossHead& head) const {
  const io::Words n = head.n(), d = head.d(), i = std::min(n, io::Words(rows));
  return words(2 * n * d + 2 * n + io::tiles(head.n(), rows) * (2 * n * d), n * d,
               i * (3 * d + 2) + 2 * d + 2);
}

io::Traffic LossForward::cost(const LossHead& head) const {
  const io::Words n = head.n(), d = head.d();
  return then(words(2 * (d * d + n * d), 2 * n * d, d * d + d + 1), LossResidual{rows}.cost(head));
}

io::Traffic LossLarge::cost(const LossHead& head) const {
  const io::Words n = head.n(), d = head.d();
  const io::Traffic product = words(2 * n * d, d * d, d * d + d + 1);
  return then(LossForward{forward_rows}.cost(head), then(WeighedKeys{rows}.cost(head), product));
}

io::Traffic LossRows::cost(const LossHead& head) const {
  const auto matrix = [&](const char* name, std::int64_t rows_of) {
    return io::MutableSlowMatrix(name, rows_of, head.d(), DType::f32, nullptr, head.d());
  };
  const TiledProduct tile{side, side, side};
  const io::Traffic tall = tile.cost({head.A1, head.X, matrix("QX", head.n())});
  const io::Traffic square =
      tile.cost({head.A1, matrix("W", head.n()), head.dX, Form::first_transposed});
  return then(then(then(tall, tall), LossResidual{forward_rows}.cost(head)),
              then(WeighedKeys{rows}.cost(head), square));
}

io::Traffic LossLargeDirect::cost(const LossHead& head) const {
  const io::Words n = head.n(), d = head.d(), i = std::min(n, io::Words(rows));
  const io::Traffic pass = words(d * d + n * (2 * d + 2) + io::tiles(head.n(), rows) * (2 * n * d),
                                 d * d, 2 * d * d + i * (2 * d + 2) + 4 * d + 2);
  return then(LossForward{forward_rows}.cost(head), pass);
}

io::Traffic LossSmall::cost(const LossHead& head) const {
  const io::Words n = head.n(), d = head.d();
  const io::Words a = io::tiles(head.n(), side), e = io::tiles(head.d(), side);
  const io::Words bn = std::min(n, io::Words(side)), bd = std::min(d, io::Words(side));
  const io::Words tall = bn * bd + bn * bd + bd * bd;  // (n, d) <- (n, d) (d, d)
  const io::Words pairs = bn * bn + 2 * bn * bd;       // any other product
  return words(2 * (n * d * e + d * d * a) + 2 * n * d * a + (n * n * e + n * d * a + n * d + n) +
                   (2 * n * d * a + n * n + 2 * n) + (n * n * e + n * d * a) + 2 * d * n * e,
               4 * n * d + 2 * n * n + 2 * n + d * d,
               std::max({tall, pairs + 3 * bn, bn * bd + 3 * bn + 1, bn * bn + 2 * bn + 1}));
}

}  // namespace attest::schedules
