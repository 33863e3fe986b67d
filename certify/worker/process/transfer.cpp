#include "certify/worker/process/transfer.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "certify/printable.hpp"
#include "core/error.hpp"
#include "core/features/head_mask_array.hpp"
#include "core/mask/sparsity/blocks_of.hpp"
#include "gpu/runtime/calls/call_interface.hpp"

namespace attest::certify::worker {
namespace {

constexpr std::byte kPoison{0xff};

std::uint64_t element_bytes(const attest_tensor& tensor) { return tensor.dtype.bits / 8u; }

std::uint64_t span_bytes(const attest_tensor& tensor) {
  std::int64_t last = 0;
  for (std::int32_t axis = 0; axis < tensor.ndim; ++axis) {
    if (tensor.shape[axis] == 0) return 0;
    last += (tensor.shape[axis] - 1) * tensor.strides[axis];
  }
  return (static_cast<std::uint64_t>(last) + 1) * element_bytes(tensor);
}

std::byte* first_element(const attest_tensor& tensor) {
  return static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
}

// Visits the elements at the same places of two memories until a visit says false.
template <typename Byte, typename Visit>
bool visit_elements(const attest_tensor& tensor, std::int32_t axis, Byte* a, const std::byte* b,
                    const Visit& visit) {
  if (axis == tensor.ndim) return visit(a, b, element_bytes(tensor));
  const std::int64_t step = tensor.strides[axis] * static_cast<std::int64_t>(element_bytes(tensor));
  for (std::int64_t k = 0; k < tensor.shape[axis]; ++k) {
    if (!visit_elements(tensor, axis + 1, a + k * step, b + k * step, visit)) return false;
  }
  return true;
}

// The span of a tensor in one visit, or where that is long the elements only, not what lies between
// them.
template <typename Byte, typename Visit>
bool visit_tensor(const attest_tensor& tensor, Byte* a, const std::byte* b, const Visit& visit) {
  const std::uint64_t bytes = span_bytes(tensor);
  if (bytes == 0) return true;
  if (bytes <= CallMemory::kWholeBytes) return visit(a, b, bytes);
  return visit_elements(tensor, 0, a, b, visit);
}

void copy_tensor(const attest_tensor& tensor, std::byte* to, const std::byte* from) {
  visit_tensor(tensor, to, from, [](std::byte* a, const std::byte* b, std::uint64_t bytes) {
    std::memcpy(a, b, bytes);
    return true;
  });
}

bool equal_tensor(const attest_tensor& tensor, const std::byte* a, const std::byte* b) {
  return visit_tensor(tensor, a, b,
                      [](const std::byte* x, const std::byte* y, std::uint64_t bytes) {
                        return std::memcmp(x, y, bytes) == 0;
                      });
}

template <typename T>
T* pointer(std::uint64_t address) {
  return reinterpret_cast<T*>(address);  // NOLINT(performance-no-int-to-ptr): of another process
}

}  // namespace

Transfer::Transfer(Arena& arena, std::uint64_t first, bool on_emulated_device)
    : on_emulated_device_(on_emulated_device),
      arena_(arena),
      memory_(arena, first),
      block_index_(memory_.place("the argument structs", sizeof(CallBlock), Access::read_only,
                                 CallMemory::Side::host)) {}

std::uint64_t Transfer::in_block(const void* member) const {
  const auto* begin = reinterpret_cast<const std::byte*>(&block_);
  return memory_.address(block_index_) +
         static_cast<std::uint64_t>(static_cast<const std::byte*>(member) - begin);
}

const void* Transfer::list(std::string_view name, const void* data, std::size_t bytes) {
  if (data == nullptr) return nullptr;
  const std::size_t buffer = memory_.place(name, bytes, Access::read_only);
  std::memcpy(memory_.bytes(buffer), data, bytes);
  lists_.push_back({data, bytes, buffer});
  return pointer<const void>(memory_.address(buffer));
}

attest_lists Transfer::lists(std::string_view name, const attest_lists& given, std::int64_t lines) {
  const auto count = static_cast<std::size_t>(lines);
  const auto indices = static_cast<std::size_t>(given.offsets[count]);
  return {
      static_cast<const std::int64_t*>(
          list(name, given.offsets, (count + 1) * sizeof(std::int64_t))),
      static_cast<const std::int32_t*>(list(name, given.indices, indices * sizeof(std::int32_t)))};
}

void Transfer::sparsity(const attest_problem& problem) {
  attest_mask& mask = block_.problem.mask;
  if (const attest_block_mask* const given = problem.mask.blocks; given != nullptr) {
    block_.blocks = *given;
    block_.blocks.by_query = lists("the block mask by query", given->by_query,
                                   blocks_of(problem.seqlen_q, given->block_q));
    block_.blocks.by_key =
        lists("the block mask by key", given->by_key, blocks_of(problem.seqlen_k, given->block_k));
    mask.blocks = pointer<const attest_block_mask>(in_block(&block_.blocks));
  }
  if (const attest_csr_mask* const given = problem.mask.csr; given != nullptr) {
    block_.csr = *given;
    block_.csr.by_query = lists("the CSR mask by query", given->by_query, problem.seqlen_q);
    block_.csr.by_key = lists("the CSR mask by key", given->by_key, problem.seqlen_k);
    mask.csr = pointer<const attest_csr_mask>(in_block(&block_.csr));
  }
  if (const attest_nm_mask* const given = problem.mask.nm; given != nullptr) {
    block_.nm = *given;
    const std::int64_t groups = problem.seqlen_q * blocks_of(problem.seqlen_k, given->group);
    block_.nm.offsets = static_cast<const std::uint8_t*>(
        list("the N:M mask", given->offsets, static_cast<std::size_t>(groups * given->kept)));
    mask.nm = pointer<const attest_nm_mask>(in_block(&block_.nm));
  }
}

const attest_problem* Transfer::problem(const attest_problem& problem) {
  const auto batch = static_cast<std::size_t>(problem.batch);
  const auto pairs = static_cast<std::size_t>(problem.seqlen_q * problem.seqlen_k);
  block_.problem = problem;
  block_.problem.alibi_slopes = static_cast<const float*>(
      list("alibi_slopes", problem.alibi_slopes,
           static_cast<std::size_t>(problem.num_heads_q) * sizeof(float)));
  block_.problem.sinks = static_cast<const float*>(
      list("sinks", problem.sinks, static_cast<std::size_t>(problem.num_heads_q) * sizeof(float)));
  if (problem.paged_kv != nullptr) {
    block_.paged_kv = *problem.paged_kv;
    const std::size_t entries = batch * static_cast<std::size_t>(problem.paged_kv->max_pages);
    block_.paged_kv.block_table = static_cast<const std::int32_t*>(
        list("block_table", problem.paged_kv->block_table, entries * sizeof(std::int32_t)));
    block_.problem.paged_kv = pointer<const attest_paged_kv>(in_block(&block_.paged_kv));
  }
  attest_mask& mask = block_.problem.mask;
  mask.key_lengths = static_cast<const std::int32_t*>(
      list("key_lengths", mask.key_lengths, batch * sizeof(std::int32_t)));
  mask.cu_seqlens_q = static_cast<const std::int32_t*>(
      list("cu_seqlens_q", mask.cu_seqlens_q, (batch + 1) * sizeof(std::int32_t)));
  mask.cu_seqlens_k = static_cast<const std::int32_t*>(
      list("cu_seqlens_k", mask.cu_seqlens_k, (batch + 1) * sizeof(std::int32_t)));
  mask.query_lengths = static_cast<const std::int32_t*>(
      list("query_lengths", mask.query_lengths, batch * sizeof(std::int32_t)));
  if (mask.per_head != nullptr) {
    block_.head_mask = *mask.per_head;
    block_.head_mask.visible =
        static_cast<const std::uint8_t*>(list("the mask of heads", mask.per_head->visible,
                                              static_cast<std::size_t>(head_mask_span(problem))));
    mask.per_head = pointer<const attest_head_mask>(in_block(&block_.head_mask));
  }
  if (mask.window_ends != nullptr) {
    block_.window_ends = *mask.window_ends;
    mask.window_ends = pointer<const attest_window_ends>(in_block(&block_.window_ends));
  }
  mask.boolean = static_cast<const std::uint8_t*>(list("the boolean mask", mask.boolean, pairs));
  sparsity(problem);
  return pointer<const attest_problem>(in_block(&block_.problem));
}

Transfer::Placed Transfer::place(std::string_view name, const attest_tensor* tensor,
                                 Access access) {
  const std::uint64_t bytes = span_bytes(*tensor);
  const std::byte* const first = first_element(*tensor);
  for (const Placed& whole : tensors_) {
    if (access == Access::writable || whole.access == Access::writable || bytes == 0) continue;
    const std::byte *const begin = first_element(*whole.tensor), *const end =
                                                                     begin +
                                                                     span_bytes(*whole.tensor);
    if (std::less<>()(first, begin) || std::less<>()(end, first + bytes)) continue;
    return {tensor, whole.buffer, whole.offset + static_cast<std::uint64_t>(first - begin), access};
  }
  const std::size_t buffer = memory_.place(name, bytes, access);
  copy_tensor(*tensor, memory_.bytes(buffer), first);
  return {tensor, buffer, 0, access};
}

const attest_tensor* Transfer::tensor(std::string_view name, const attest_tensor* tensor,
                                      Access access) {
  if (tensor == nullptr) return nullptr;
  if (tensors_.size() == CallBlock::kMostTensors ||
      tensor->ndim > static_cast<std::int32_t>(CallBlock::kMostAxes)) {
    throw InternalError("worker: too many tensors or axes");
  }
  const std::size_t k = tensors_.size();
  const Placed placed = place(name, tensor, access);
  tensors_.push_back(placed);
  std::copy_n(tensor->shape, tensor->ndim, block_.shapes[k]);
  std::copy_n(tensor->strides, tensor->ndim, block_.strides[k]);
  attest_tensor& copy = block_.tensors[k];
  copy = *tensor;
  copy.data = pointer<void>(memory_.address(placed.buffer) + placed.offset - tensor->byte_offset);
  if (on_emulated_device_) copy.device = {ATTEST_CUDA, 0};
  copy.shape = pointer<std::int64_t>(in_block(block_.shapes[k]));
  copy.strides = pointer<std::int64_t>(in_block(block_.strides[k]));
  return pointer<const attest_tensor>(in_block(&copy));
}

void* Transfer::stream() const {
  return on_emulated_device_ ? pointer<void>(gpu::runtime::kCallStream) : nullptr;
}

void* Transfer::workspace(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  const std::size_t buffer = memory_.place("workspace", bytes, Access::writable);
  std::fill_n(memory_.bytes(buffer), bytes, kPoison);
  return pointer<void>(memory_.address(buffer));
}

char* Transfer::message(char* text, std::size_t bytes) {
  if (text == nullptr || bytes == 0) return nullptr;
  text_ = text;
  text_bytes_ = bytes;
  text_buffer_ = memory_.place("message", bytes, Access::writable, CallMemory::Side::host);
  std::fill_n(memory_.bytes(text_buffer_), bytes, std::byte{0});
  return pointer<char>(memory_.address(text_buffer_));
}

std::uint64_t Transfer::publish(Task task) {
  std::memcpy(memory_.bytes(block_index_), &block_, sizeof block_);
  Control& control = arena_.control();
  control.task = task;
  control.arguments =
      task == Task::workspace ? in_block(&block_.problem) : in_block(&block_.arguments);
  return memory_.publish();
}

void Transfer::copy_back() const {
  for (const Placed& placed : tensors_) {
    if (placed.access == Access::read_only) continue;
    copy_tensor(*placed.tensor, first_element(*placed.tensor), memory_.bytes(placed.buffer));
  }
  if (text_ == nullptr) return;
  const auto* const begin = reinterpret_cast<const char*>(memory_.bytes(text_buffer_));
  put_text(text_, text_bytes_,
           printable_lines({begin, static_cast<std::size_t>(
                                       std::find(begin, begin + text_bytes_, '\0') - begin)}));
}

void put_text(char* to, std::size_t bytes, std::string_view text) {
  if (to == nullptr || bytes == 0) return;
  const std::size_t count = std::min(text.size(), bytes - 1);
  std::memcpy(to, text.data(), count);
  to[count] = '\0';
}

std::optional<std::string> Transfer::changed_input() const {
  // Every byte, padding too: the block was copied as bytes.
  // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
  if (std::memcmp(memory_.bytes(block_index_), &block_, sizeof block_) != 0) {
    return memory_.name(block_index_);
  }
  for (const List& list : lists_) {
    if (std::memcmp(memory_.bytes(list.buffer), list.data, list.bytes) != 0) {
      return memory_.name(list.buffer);
    }
  }
  for (const Placed& placed : tensors_) {
    if (placed.access == Access::writable) continue;
    if (!equal_tensor(*placed.tensor, memory_.bytes(placed.buffer) + placed.offset,
                      first_element(*placed.tensor))) {
      return memory_.name(placed.buffer);
    }
  }
  return std::nullopt;
}

}  // namespace attest::certify::worker
