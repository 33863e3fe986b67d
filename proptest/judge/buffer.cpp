#include "proptest/judge/buffer.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>

#include "core/error.hpp"
#include "core/features/shared_columns.hpp"

namespace attest::proptest {
namespace {

constexpr std::size_t kGuardBytes = 4096;
constexpr unsigned char kPoison = 0xff;
constexpr std::size_t kDenseBytes = std::size_t{1} << 28;  // above it gaps stay unmapped zeros

template <class Visit>
void for_each_index(const std::int64_t (&extents)[TensorView::kMaxRank], const Visit& visit) {
  for (std::int64_t a = 0; a < extents[0]; ++a) {
    for (std::int64_t b = 0; b < extents[1]; ++b) {
      for (std::int64_t c = 0; c < extents[2]; ++c) {
        for (std::int64_t d = 0; d < extents[3]; ++d) visit(a, b, c, d);
      }
    }
  }
}

// The elements of a tensor in the order of their indices, as many at once as lie side by side:
// where they begin, in bytes from the first, and how many bytes they have.
template <class Visit>
void for_each_run(const TensorView& view, const Visit& visit) {
  const std::size_t width = size_bytes(view.dtype()), rank = view.rank();
  std::size_t run = 1;
  if (rank > 0 && view.stride(rank - 1) == 1) run = static_cast<std::size_t>(view.extent(rank - 1));
  std::int64_t strides[TensorView::kMaxRank] = {}, extents[TensorView::kMaxRank] = {1, 1, 1, 1};
  for (std::size_t axis = 0; axis < rank; ++axis) {
    strides[axis] = view.stride(axis) * static_cast<std::int64_t>(width);
    extents[axis] = view.extent(axis);
  }
  if (run != 1) extents[rank - 1] = std::min<std::int64_t>(extents[rank - 1], 1);
  for_each_index(extents, [&](auto a, auto b, auto c, auto d) {
    visit(
        static_cast<std::size_t>(a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3]),
        run * width);
  });
}

bool without_gaps(const TensorView& view) {
  for (std::size_t axis = 0; axis < view.rank(); ++axis) {
    if (view.stride(axis) == 0 && view.extent(axis) > 1) return false;  // its span says less
  }
  return view.span_elements() == view.size();
}

// Fills strides from the innermost axis of `order` outwards; `gap` elements after every axis.
void stack(std::vector<Axis>& axes, const std::vector<std::size_t>& order, std::int64_t innermost,
           std::int64_t gap) {
  std::int64_t stride = innermost;
  for (std::size_t k = order.size(); k-- > 0;) {
    axes[order[k]].stride = stride;
    stride = stride * std::max<std::int64_t>(axes[order[k]].extent, 1) + gap;
  }
}

}  // namespace

std::uint64_t unwritten_bits(DType dtype) {
  // All bits of the exponent, and a fraction that no arithmetic makes.
  constexpr std::uint64_t kFraction = 0xa5a5a5a5a5a5a5a5u;
  const int fraction_bits = -std::ilogb(unit_roundoff(dtype)) - 1;
  const std::uint64_t fraction = (std::uint64_t{1} << fraction_bits) - 1;
  const std::uint64_t magnitude = (std::uint64_t{1} << (facts(dtype).bits - 1)) - 1;
  return (magnitude & ~fraction) | (kFraction & fraction);
}

std::vector<Axis> lay_out(std::vector<Axis> axes, Layout layout, Strides strides, Repeat repeat) {
  std::vector<std::size_t> order(axes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (axes.size() == 4 && layout == Layout::bhsd) order = {0, 2, 1, 3};
  constexpr std::int64_t kGap = 3;
  switch (strides) {
    case Strides::packed:
    case Strides::mixed:
      stack(axes, order, 1, 0);
      break;
    case Strides::padded:
      stack(axes, order, 1, kGap);
      break;
    case Strides::transposed:
      std::rotate(order.begin(), order.end() - 1, order.end());
      stack(axes, order, 1, 0);
      break;
    case Strides::interleaved:
      stack(axes, order, 2, 0);
      break;
    case Strides::broadcast:
      stack(axes, order, 1, 0);
      if (repeat != Repeat::none) axes[repeat == Repeat::heads ? 2 : 1].stride = 0;
      break;
    case Strides::huge: {
      stack(axes, order, 1, 0);
      // The last element lies beyond what 32 bits count, and a tensor never needs more addresses
      // than that, however many rows it has.
      constexpr std::int64_t kFar = (std::int64_t{1} << 32) + 64, kGrain = 64;
      // The innermost stride stays 1, which many kernels need: where only that axis has several
      // elements, all are near.
      for (const std::size_t axis : order) {
        if (axes[axis].extent <= 1 || axis == order.back()) continue;
        const std::int64_t apart = kFar / (axes[axis].extent - 1);
        axes[axis].stride = std::max(axes[axis].stride, (apart / kGrain + 1) * kGrain);
        break;
      }
      break;
    }
  }
  return axes;
}

struct Buffer::Mapping {
  explicit Mapping(std::size_t payload) : bytes(payload + 2 * kGuardBytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      throw InvalidProblem("cannot map " + std::to_string(bytes) +
                           " bytes for a tensor; choose a smaller problem or strides=packed");
    }
    base = static_cast<unsigned char*>(memory);
    dense = payload <= kDenseBytes;
    poison();
  }
  void poison() const {
    std::memset(base, kPoison, dense ? bytes : kGuardBytes);
    if (!dense) std::memset(base + bytes - kGuardBytes, kPoison, kGuardBytes);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { munmap(base, bytes); }

  std::size_t bytes;
  unsigned char* base = nullptr;
  bool dense = true;
};

namespace {
thread_local SameMemory* kept_memory = nullptr;
}  // namespace

SameMemory::SameMemory() : outer_(kept_memory) {
  static std::atomic<std::uint64_t> scopes{0};
  run_.scope = ++scopes;
  kept_memory = this;
}

SameMemory::~SameMemory() { kept_memory = outer_; }

SameMemory::Run SameMemory::current() { return kept_memory == nullptr ? Run{} : kept_memory->run_; }

void SameMemory::begin_run() {
  if (kept_memory == nullptr) return;
  ++kept_memory->run_.run;
  kept_memory->next_ = 0;
}

std::shared_ptr<Buffer::Mapping> SameMemory::mapping(std::size_t payload) {
  if (kept_memory == nullptr) return std::make_shared<Buffer::Mapping>(payload);
  auto& kept = kept_memory->kept_;
  const std::size_t index = kept_memory->next_++;
  if (index == kept.size()) kept.emplace_back();
  std::shared_ptr<Buffer::Mapping>& mapping = kept[index];
  const bool same = mapping && mapping->dense && mapping->bytes == payload + 2 * kGuardBytes;
  if (same) {
    mapping->poison();
  } else {
    mapping = std::make_shared<Buffer::Mapping>(payload);
  }
  return mapping;
}

Buffer::Buffer(std::string_view name, DType dtype, const std::vector<Axis>& axes) {
  const TensorView shape(name, this, dtype, axes);
  const auto payload = static_cast<std::size_t>(shape.span_elements()) * size_bytes(dtype);
  mapping_ = SameMemory::mapping(payload);
  view_ = TensorView(name, mapping_->base + kGuardBytes, dtype, axes);
  const std::uint64_t bits = unwritten_bits(dtype);
  auto* const elements = static_cast<unsigned char*>(view_.data());
  std::vector<unsigned char> unwritten;  // a run of them
  for_each_run(view_, [&](std::size_t offset, std::size_t bytes) {
    for (std::size_t width = size_bytes(dtype); unwritten.size() < bytes;) {
      const auto* const element = reinterpret_cast<const unsigned char*>(&bits);
      unwritten.insert(unwritten.end(), element, element + width);  // least significant byte first
    }
    std::memcpy(elements + offset, unwritten.data(), bytes);
  });
}

void Buffer::fill(const Tensor& values) {
  const auto extent = [&](std::size_t axis) {
    return axis < view_.rank() ? view_.extent(axis) : 1;
  };
  for_each_index({extent(0), extent(1), extent(2), extent(3)}, [&](auto a, auto b, auto c, auto d) {
    view_.set(values(a, b, c, d), a, b, c, d);
  });
}

Buffer Buffer::columns(std::string_view name, std::int64_t first, std::int64_t count) const {
  Buffer part;
  part.mapping_ = mapping_;
  part.is_part_ = true;
  part.view_ = columns_of(view_, name, first, count);
  return part;
}

Tensor Buffer::packed_copy() const {
  std::vector<Axis> axes;
  for (std::size_t axis = 0; axis < view_.rank(); ++axis) axes.push_back(view_.axis(axis));
  Tensor copy(view_.name(), view_.dtype(), axes);
  const auto* const from = static_cast<const unsigned char*>(view_.data());
  auto* to = static_cast<unsigned char*>(copy.view().data());  // packed: in the order of indices
  for_each_run(view_, [&](std::size_t offset, std::size_t bytes) {
    std::memcpy(to, from + offset, bytes);
    to += bytes;
  });
  return copy;
}

std::string Buffer::disturbed() const {
  const auto intact = [](const unsigned char* begin, std::size_t count) {
    return std::all_of(begin, begin + count, [](unsigned char byte) { return byte == kPoison; });
  };
  if (is_part_) return "";
  const Mapping& memory = *mapping_;
  const std::string tensor(view_.name());
  if (!intact(memory.base, kGuardBytes)) return tensor + ": written before its first element";
  if (!intact(memory.base + memory.bytes - kGuardBytes, kGuardBytes)) {
    return tensor + ": written past its last element";
  }
  if (!memory.dense) return "";
  if (without_gaps(view_)) return "";
  std::vector<char> owned(memory.bytes, 0);
  for_each_run(view_, [&](std::size_t offset, std::size_t bytes) {
    std::memset(owned.data() + kGuardBytes + offset, 1, bytes);
  });
  for (std::size_t byte = kGuardBytes; byte < memory.bytes - kGuardBytes; ++byte) {
    if (owned[byte] == 0 && memory.base[byte] != kPoison) {
      return tensor + ": gap between its elements was written, at byte " +
             std::to_string(byte - kGuardBytes);
    }
  }
  return "";
}

KernelTensor::KernelTensor(const Buffer& buffer, std::uint64_t byte_offset)
    : abi_(buffer.view()), tensor_(*abi_.get()), view_(buffer.view()) {
  if (byte_offset > kGuardBytes) {
    throw InternalError("KernelTensor: byte offset " + std::to_string(byte_offset) +
                        " is beyond the guard of " + std::to_string(kGuardBytes));
  }
  tensor_.data = static_cast<unsigned char*>(tensor_.data) - byte_offset;
  tensor_.byte_offset = byte_offset;
  std::memcpy(bytes_before_.data(), &tensor_, sizeof tensor_);
}

std::string KernelTensor::changed() const {
  bool same = std::memcmp(bytes_before_.data(), &tensor_, sizeof tensor_) == 0;
  for (std::size_t axis = 0; same && axis < view_.rank(); ++axis) {
    same = tensor_.shape[axis] == view_.extent(axis) && tensor_.strides[axis] == view_.stride(axis);
  }
  return same ? "" : std::string(view_.name()) + ": its description was modified";
}

std::uint64_t byte_offset_of(Strides strides) {
  constexpr std::uint64_t kOffset = 192;  // a multiple of every element's size
  return strides == Strides::packed ? 0 : kOffset;
}

std::string Buffer::changed_since(const Tensor& before) const {
  const auto* const now = static_cast<const unsigned char*>(view_.data());
  const auto* then = static_cast<const unsigned char*>(before.view().data());
  bool same = true;
  for_each_run(view_, [&](std::size_t offset, std::size_t bytes) {
    same = same && std::memcmp(now + offset, then, bytes) == 0;
    then += bytes;
  });
  return same ? "" : "input " + std::string(view_.name()) + " was modified";
}

Input::Input(const Tensor& values, DType dtype, const std::vector<Axis>& axes)
    : buffer(values.view().name(), dtype, axes) {
  buffer.fill(values);
  before = buffer.packed_copy();
}

std::string Input::changed() const {
  const std::string finding = buffer.changed_since(before);
  return finding.empty() ? buffer.disturbed() : finding;
}

Workspace::Workspace(std::size_t bytes)
    : bytes_(bytes), storage_(bytes + 2 * kGuardBytes, kPoison) {}

void* Workspace::data() { return bytes_ == 0 ? nullptr : storage_.data() + kGuardBytes; }

std::string Workspace::disturbed() const {
  for (std::size_t k = 0; k < kGuardBytes; ++k) {
    if (storage_[k] != kPoison) return "workspace: written before its begin";
    if (storage_[kGuardBytes + bytes_ + k] != kPoison) return "workspace: written past its end";
  }
  return "";
}

}  // namespace attest::proptest
