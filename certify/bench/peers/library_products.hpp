#pragma once

#include <vector>

#include "certify/bench/peers/flash_on_products.hpp"

namespace attest::certify {

/// Returns the libraries whose products this was built with, those alone that CMake found.
std::vector<PeerLibrary>& peer_libraries();

}  // namespace attest::certify
