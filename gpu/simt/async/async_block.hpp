#pragma once

#include <cstdint>
#include <string>

#include "gpu/simt/async/mbarrier.hpp"
#include "gpu/simt/async/tensor_copy.hpp"
#include "gpu/simt/diagnosis.hpp"
#include "gpu/simt/memory/shared_memory.hpp"

namespace attest::simt {

/// A block as its mbarriers and tensor copies see it, whoever runs its lanes.
class AsyncBlock {
 public:
  AsyncBlock() = default;
  virtual ~AsyncBlock() = default;
  AsyncBlock(const AsyncBlock&) = delete;
  AsyncBlock& operator=(const AsyncBlock&) = delete;

  SharedMemory& shared() { return shared_; }
  const SharedMemory& shared() const { return shared_; }
  Mbarriers& mbarriers() { return mbarriers_; }
  TensorCopies& tensor_copies() { return tensor_copies_; }

  /// The lane whose instruction is carried out.
  virtual std::uint32_t lane_number() const = 0;
  /// Lets a lane go on that waits for an mbarrier.
  virtual void wake(std::uint32_t lane) = 0;

  /// Adds a diagnosis, once for each fault at each known line.
  virtual void report_once(const Finding& finding, SourceLine where) = 0;
  /// Adds one and gives the block up.
  [[noreturn]] virtual void stop(Fault fault, std::string text, SourceLine where) = 0;

  /// A row of a tensor's box, counted, as far as it may be accessed.
  virtual void read_row(int tensor, const void* from, void* to, std::size_t bytes,
                        SourceLine where) = 0;
  virtual void write_row(int tensor, void* to, const void* from, std::size_t bytes,
                         SourceLine where) = 0;
  virtual const std::string& tensor_name(int tensor) const = 0;

 protected:
  SharedMemory shared_;
  Mbarriers mbarriers_;
  TensorCopies tensor_copies_;
};

}  // namespace attest::simt
