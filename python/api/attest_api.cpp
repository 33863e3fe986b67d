#include "python/api/attest_api.h"

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "certify/worker/process/forked.hpp"
#include "core/error.hpp"
#include "gpu/ptx/text/parser.hpp"
#include "python/api/attention_call.hpp"
#include "python/api/campaign.hpp"
#include "python/api/isolation.hpp"
#include "python/api/judgement.hpp"
#include "python/api/ptx_launch.hpp"

namespace {

using namespace attest;
using python::AttentionCall;
using python::write;

thread_local std::string text_of_last_call;

// Runs the body, which returns an outcome, and lets no exception through.
template <class Body>
int guarded(const Body& body) {
  text_of_last_call.clear();
  try {
    return body();
  } catch (const InvalidProblem& error) {
    text_of_last_call = error.what();
    return ATTEST_BAD_INPUT;
  } catch (const std::bad_alloc&) {
    text_of_last_call = "not enough memory for this problem; make it smaller";
    return ATTEST_BAD_INPUT;
  } catch (const std::exception& error) {
    text_of_last_call = error.what();
    return ATTEST_INTERNAL_ERROR;
  }
}

int told(python::Judgement judgement) {
  text_of_last_call = std::move(judgement.text);
  return judgement.outcome;
}

void require_given(const void* pointer, const char* name) {
  if (pointer == nullptr) throw InvalidProblem(std::string(name) + " is NULL");
}

void write_where_given(const Tensor& from, const attest_tensor* to) {
  if (to != nullptr) write(from, *to);
}

bool wants_gradients(const attest_results* results) {
  return results != nullptr &&
         (results->dQ != nullptr || results->dK != nullptr || results->dV != nullptr ||
          results->dSinks != nullptr || results->dBias != nullptr);
}

void require_cotangent(const AttentionCall& call) {
  if (call.direction == Direction::backward) return;
  throw InvalidProblem("gradients are asked for without dO; give it");
}

void write_bounds(const reference::ForwardBounds& bounds, const attest_results& to,
                  Tensor reference::ErrorBound::*kind) {
  write_where_given(bounds.O.*kind, to.O);
  write_where_given(bounds.LSE.*kind, to.LSE);
}

void write_bounds(const reference::BackwardBounds& bounds, const attest_results& to,
                  Tensor reference::ErrorBound::*kind) {
  write_where_given(bounds.dQ.*kind, to.dQ);
  write_where_given(bounds.dK.*kind, to.dK);
  write_where_given(bounds.dV.*kind, to.dV);
  write_where_given(bounds.dSinks.*kind, to.dSinks);
  write_where_given(bounds.dBias.*kind, to.dBias);
}

}  // namespace

int attest_judge(const attest_attention* given) {
  return guarded([&] {
    require_given(given, "call");
    const AttentionCall call = python::read_call(*given, proptest::Work::sampled_judgement);
    return told(python::judge(call, python::read_run(call, given->got)));
  });
}

int attest_reference(const attest_attention* given, const attest_results* exact) {
  return guarded([&] {
    require_given(given, "call");
    require_given(exact, "exact");
    const AttentionCall call = python::read_call(*given, proptest::Work::calls);
    proptest::require_answer(call.problem, call.values);
    const auto &Q = call.values.Q.view(), &K = call.values.K.view(), &V = call.values.V.view();
    if (exact->O != nullptr || exact->LSE != nullptr) {
      const reference::Forward forward =
          reference::forward(call.problem, conventions_of(call.description), Q, K, V);
      write_where_given(forward.O, exact->O);
      write_where_given(forward.LSE, exact->LSE);
    }
    if (!wants_gradients(exact)) return ATTEST_PASSED;
    require_cotangent(call);
    const bool dlse = (call.description.features & ATTEST_DLSE) != 0;
    const reference::Backward backward = reference::backward(
        call.problem, Q, K, V, {call.values.dO.view(), dlse ? &call.values.dLSE.view() : nullptr});
    write_where_given(backward.dQ, exact->dQ);
    write_where_given(backward.dK, exact->dK);
    write_where_given(backward.dV, exact->dV);
    write_where_given(backward.dSinks, exact->dSinks);
    write_where_given(backward.dBias, exact->dBias);
    return ATTEST_PASSED;
  });
}

int attest_bounds(const attest_attention* given, const attest_results* proved,
                  const attest_results* probable) {
  return guarded([&] {
    require_given(given, "call");
    AttentionCall call = python::read_call(*given, proptest::Work::judgement);
    python::require_bounds(call);
    const bool gradients = wants_gradients(proved) || wants_gradients(probable);
    if (gradients) require_cotangent(call);
    if (!gradients) call.direction = Direction::forward;
    const proptest::Truth truth(call.description, call.problem, call.values, call.direction,
                                call.seed);
    const auto write_kind = [&](const attest_results* to, Tensor reference::ErrorBound::*kind) {
      if (to == nullptr) return;
      write_bounds(truth.forward_bounds(), *to, kind);
      if (wants_gradients(to)) {
        write_bounds(truth.backward_bounds(python::read_stored(call, given->got)), *to, kind);
      }
    };
    write_kind(proved, &reference::ErrorBound::deterministic);
    write_kind(probable, &reference::ErrorBound::probabilistic);
    return ATTEST_PASSED;
  });
}

int attest_certify(const attest_kernel* kernel, const char* contract, const char* options,
                   attest_progress progress, void* self) {
  return guarded([&] {
    require_given(kernel, "kernel");
    return told(
        python::certify(*kernel, contract, options == nullptr ? "" : options, {progress, self}));
  });
}

int attest_merge(const attest_kernel* kernel, const char* contract, const char* options,
                 const char* const* certificates, size_t count, attest_progress progress,
                 void* self) {
  return guarded([&] {
    require_given(kernel, "kernel");
    if (count > 0) require_given(certificates, "certificates");
    for (size_t k = 0; k < count; ++k) require_given(certificates[k], "a certificate");
    return told(python::merge(*kernel, contract, options == nullptr ? "" : options,
                              {certificates, certificates + count}, {progress, self}));
  });
}

int attest_check(const attest_kernel* kernel, const char* contract, const char* case_line,
                 const char* law) {
  return guarded([&] {
    require_given(kernel, "kernel");
    require_given(case_line, "case_line");
    require_given(law, "law");
    return told(python::check(*kernel, contract, case_line, law));
  });
}

int attest_isolate(const char* const* command, const char* limits, const attest_kernel** kernel) {
  return guarded([&] {
    require_given(command, "command");
    require_given(kernel, "kernel");
    *kernel = python::isolate(command, limits == nullptr ? "" : limits);
    return ATTEST_PASSED;
  });
}

void attest_release(const attest_kernel* kernel) { python::release(kernel); }

void attest_fork_here(void) { certify::worker::fork_when_asked(); }

int attest_serve(const attest_kernel* kernel, const char* contract, const char* refusal,
                 const char* file) {
  return guarded([&] {
    python::serve(kernel, contract, refusal, file);
    return ATTEST_PASSED;
  });
}

int attest_ptx_load(const char* text, const char* kernel, const attest_ptx** loaded) {
  return guarded([&] {
    require_given(text, "text");
    require_given(loaded, "loaded");
    *loaded = new attest_ptx{ptx::check(ptx::parse(text), kernel == nullptr ? "" : kernel)};
    return ATTEST_PASSED;
  });
}

void attest_ptx_release(const attest_ptx* loaded) { delete loaded; }

int attest_ptx_tensor_map(const attest_ptx_tensor* tensor, void* map) {
  return guarded([&] {
    require_given(tensor, "tensor");
    require_given(map, "map");
    const ptx::TensorMapBytes bytes = python::tensor_map(*tensor);
    std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(map));
    return ATTEST_PASSED;
  });
}

int attest_ptx_launch(const attest_ptx* loaded, const attest_ptx_shape* shape) {
  return guarded([&] {
    require_given(loaded, "loaded");
    require_given(shape, "shape");
    python::PtxLaunch launch = python::launch(*loaded, *shape);
    text_of_last_call = std::move(launch.report);
    return launch.outcome;
  });
}

const char* attest_text(void) { return text_of_last_call.c_str(); }

const char* attest_version(void) { return ATTEST_BUILD_VERSION; }
