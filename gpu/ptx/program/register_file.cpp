#include "gpu/ptx/program/register_file.hpp"

#include <cstring>
#include <utility>

#include "gpu/ptx/program/program.hpp"

namespace attest::ptx {
namespace {

constexpr std::size_t kAlignment = 64;  // of the widest vector of a processor
constexpr std::byte kPoison{0xFF};      // a NaN of every floating-point type

}  // namespace

std::uint32_t RegisterFile::allocate(std::size_t bytes) {
  const std::size_t slot = bytes_.size();
  bytes_.resize((slot + bytes + kAlignment - 1) / kAlignment * kAlignment, kPoison);
  return static_cast<std::uint32_t>(slot);
}

std::uint32_t RegisterFile::add(Type type) {
  return allocate(type == Type::pred ? sizeof(std::uint32_t) : kWarpLanes * bytes(type));
}

std::uint32_t RegisterFile::sink() {
  if (!sink_) sink_ = add(Type::b64);
  return *sink_;
}

std::uint32_t RegisterFile::constant(std::uint64_t value, std::uint32_t bits) {
  const auto [known, is_new] = constants_.try_emplace({bits, value}, 0);
  if (!is_new) return known->second;
  const std::size_t size = bits / 8;
  known->second = allocate(kWarpLanes * size);
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    std::memcpy(bytes_.data() + known->second + lane * size, &value, size);
  }
  return known->second;
}

std::uint32_t RegisterFile::constant_predicate(bool value) {
  const std::uint32_t lanes = value ? ~std::uint32_t{0} : 0;
  const auto [known, is_new] = constants_.try_emplace({1, lanes}, 0);
  if (!is_new) return known->second;
  known->second = allocate(sizeof lanes);
  std::memcpy(bytes_.data() + known->second, &lanes, sizeof lanes);
  return known->second;
}

}  // namespace attest::ptx
