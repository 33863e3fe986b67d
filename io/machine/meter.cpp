#include "io/machine/meter.hpp"

namespace attest::io {
namespace {

[[noreturn]] void refuse(const char* name, Words needs, std::int64_t live, std::int64_t capacity,
                         const char* unit) {
  throw CapacityExceeded("tile '" + std::string(name) + "' needs " + std::to_string(needs.value()) +
                         " " + unit + ", but " + std::to_string(live) + " of " +
                         std::to_string(capacity) + " are live");
}

std::int64_t at_least_one(std::int64_t value, const char* what) {
  if (value < 1) {
    throw InvalidProblem(std::string(what) + ": " + std::to_string(value) +
                         " is no fast memory; give at least 1");
  }
  return value;
}

}  // namespace

FastMemory FastMemory::of_words(std::int64_t words) {
  return {at_least_one(words, "fast_words"), kUnlimited};
}

FastMemory FastMemory::of_bytes(std::int64_t bytes) {
  return {kUnlimited, at_least_one(bytes, "fast_bytes")};
}

Meter::Piece Meter::take(const char* name, std::int64_t rows, std::int64_t columns,
                         std::size_t width) {
  const Words words = Words(rows) * columns;
  const Words bytes = words * static_cast<std::int64_t>(width);
  if (words > capacity_.words - live_.first) {
    refuse(name, words, live_.first, capacity_.words, "words");
  }
  if (bytes > capacity_.bytes - live_.bytes) {
    refuse(name, bytes, live_.bytes, capacity_.bytes, "bytes");
  }
  const Piece piece{live_.first, words.value(), bytes.value()};
  live_.first += piece.words;
  live_.bytes += piece.bytes;
  peak_ = larger(peak_, {live_.first, live_.bytes});
  return piece;
}

void Meter::release(const Piece& piece) noexcept {
  live_.first -= piece.words;
  live_.bytes -= piece.bytes;
  in_order_ = in_order_ && live_.first == piece.first;
}

Meter::Block::Block(Meter& meter)
    : meter_(meter), before_(meter.reads_.words + meter.writes_.words) {
  if (meter.live_.first != 0) {
    throw InternalError("a parallel block begins while " + std::to_string(meter.live_.first) +
                        " words are live; another block's fast memory does not hold them");
  }
}

Meter::Block::~Block() {
  const Words moved = meter_.reads_.words + meter_.writes_.words - before_;
  const Words times = meter_.times_;
  meter_.blocks_.count += times;
  if (times > 0) {
    meter_.blocks_.busiest_words =
        std::max(meter_.blocks_.busiest_words, Words(moved.value() / times.value()));
  }
}

Traffic Meter::traffic() const {
  if (!in_order_) {
    throw InternalError("tiles were released in another order than the opposite of taking them");
  }
  return {reads_, writes_, peak_};
}

}  // namespace attest::io
