#include "certify/cli/streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>

namespace attest::certify::cli {
namespace {

// A standard descriptor and what became of writing to it.
struct Sink {
  int descriptor;
  std::atomic<int> error{0};
};

Sink output_sink{STDOUT_FILENO}, error_sink{STDERR_FILENO};

// Says that all was written: a stream that failed would throw (fmt) or end the program.
ssize_t write_or_drop(void* cookie, const char* text, std::size_t size) {
  Sink& sink = *static_cast<Sink*>(cookie);
  for (std::size_t done = 0; done < size && sink.error == 0;) {
    const ssize_t count = write(sink.descriptor, text + done, size - done);
    if (count >= 0) {
      done += static_cast<std::size_t>(count);
    } else if (errno != EINTR) {
      sink.error = errno;
    }
  }
  return static_cast<ssize_t>(size);
}

// Null where there is no memory for one; the stream stays what it was.
std::FILE* stream_into(Sink& sink, int buffering) {
  std::FILE* const stream = fopencookie(&sink, "w", {nullptr, write_or_drop, nullptr, nullptr});
  if (stream != nullptr) std::setvbuf(stream, nullptr, buffering, BUFSIZ);
  return stream;
}

// A write to what stands in for a closed output fails, as to the closed one.
void open_closed_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) >= 0) continue;
    open("/dev/null", O_RDONLY);  // gets the lowest number that is free: this one
  }
}

}  // namespace

void keep_streams() {
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
  open_closed_descriptors();
  std::fflush(stdout);
  const int lines_or_blocks = isatty(STDOUT_FILENO) != 0 ? _IOLBF : _IOFBF;
  if (std::FILE* const output = stream_into(output_sink, lines_or_blocks)) stdout = output;
  if (std::FILE* const errors = stream_into(error_sink, _IONBF)) stderr = errors;
}

std::optional<int> output_error() {
  std::fflush(stdout);
  const int error = output_sink.error;
  return error == 0 ? std::nullopt : std::optional(error);
}

}  // namespace attest::certify::cli
