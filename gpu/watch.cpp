#include "gpu/watch.hpp"

#include "gpu/simt/watch.hpp"

namespace attest {
namespace {

struct NamedEmulation {
  std::string name;
  simt::Order order;
  std::uint64_t seed;
  int threads;
};

const std::vector<NamedEmulation>& emulations() {
  static const std::vector<NamedEmulation> all{
      {"ascending", simt::Order::ascending, 1, 1},
      {"descending", simt::Order::descending, 1, 1},
      {"shuffled", simt::Order::shuffled, 1, 1},
      {"shuffled, two blocks at a time", simt::Order::shuffled, 7, 2}};
  return all;
}

}  // namespace

const std::vector<std::string>& emulation_orders() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const NamedEmulation& emulation : emulations()) list.push_back(emulation.name);
    return list;
  }();
  return names;
}

WatchedLaunches watch_launches(std::size_t order, SharedMemoryChecks checks,
                               const std::function<void()>& call) {
  const NamedEmulation& named = emulations().at(order);
  simt::Emulation emulation;
  emulation.order = named.order;
  emulation.seed = named.seed;
  emulation.threads = named.threads;
  emulation.shared_checks =
      checks == SharedMemoryChecks::on ? simt::SharedChecks::on : simt::SharedChecks::off;
  simt::Watch watch(emulation);
  call();
  WatchedLaunches found{
      watch.launches(), watch.report().blocks_given_up, watch.report().shared_bytes, {}};
  for (const simt::Diagnosis& diagnosis : watch.report().diagnoses) {
    found.diagnoses.push_back(diagnosis.to_string());
  }
  return found;
}

}  // namespace attest
