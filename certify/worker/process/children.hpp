#pragma once

#include <sys/types.h>

#include <set>

namespace attest::certify::worker {

/// Tells whether this process has children that it has not waited for.
bool has_children();

/// The processes that this one has started, those that it has waited for too. A process that a
/// library starts while it loads is not a call's.  [certify/worker/runtime_test "what a library
/// starts"]
class Children {
 public:
  /// Sees every fork from now on. To be called once in a process.
  static void watch();

  /// Forgives the processes there are now, and forks until now: they are nobody's.
  void forgive();

  /// Tells whether another process was started since. One of the forgiven may end meanwhile.
  bool started();

 private:
  std::set<pid_t> living_;
  long waited_ = 0;  // page faults of those waited for
};

}  // namespace attest::certify::worker
