#include "certify/worker/protocol.hpp"

#include "certify/worker/transfer.hpp"

namespace attest::certify::worker {

Layout layout_of_messages() {
  Layout layout{"", sizeof(Control), sizeof(CallBlock)};
  put_text(layout.version, sizeof layout.version, ATTEST_BUILD_VERSION);
  return layout;
}

}  // namespace attest::certify::worker
