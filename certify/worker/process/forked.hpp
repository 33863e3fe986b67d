#pragma once

namespace attest::certify::worker {

/// To be called by a program between what it does once and what belongs to every process that makes
/// calls: where the certifier wants many such processes, each is forked from this one here and
/// returns. It is a child of the certifier, with a socket, an arena and outputs of its own, and
/// nothing tells it from a process that was started. The first process then serves forks until the
/// certifier closes its end.
///
/// Returns at once, in the process that the certifier started, where nothing is asked for or a fork
/// would not be such a process: where it lacked threads, children or timers of this one, or shared
/// open files or memory with it. Signals are held back while it serves.
/// [certify/worker/process/forked_test "a program that is forked"]
/// [certify/worker/process/forked_test "what is forked from gets a signal"]
void fork_when_asked();

}  // namespace attest::certify::worker
