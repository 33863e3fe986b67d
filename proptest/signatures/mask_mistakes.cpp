#include <algorithm>
#include <memory>

#include "proptest/signatures/alternative.hpp"

namespace attest::proptest {
namespace {

// The pairs that the band or the boolean mask has. Requires: both, neither lengths nor packed.
Pattern either_of(const Problem& problem) {
  Pattern band = problem.mask, either;
  band.boolean = nullptr;
  auto pairs = std::make_shared<BooleanMask>(*problem.mask.boolean);
  pairs->sparsity = nullptr;
  const Sequence sequence = problem.sequences().front();
  for (std::int64_t i = 0; i < pairs->rows; ++i) {
    for (std::int64_t j = 0; j < pairs->columns; ++j) {
      auto& pair = pairs->visible[static_cast<std::size_t>(i * pairs->columns + j)];
      if (band.visible(sequence, i, j)) pair = 1;
    }
  }
  either.boolean = std::move(pairs);
  return either;
}

}  // namespace

std::vector<MaskMistake> mask_mistakes(const Problem& problem) {
  std::vector<MaskMistake> mistakes;
  const auto add = [&](const char* name, const char* words, const auto& change) {
    mistakes.push_back({name, words, problem});
    change(mistakes.back().problem.mask);
  };
  const Pattern& mask = problem.mask;
  if (mask.banded()) {
    if (mask.align == CausalAlign::bottom_right) {
      add("top_left_causal", "with top-left causal alignment",
          [](Pattern& m) { m.align = CausalAlign::top_left; });
    } else {
      add("bottom_right_causal", "with bottom-right causal alignment",
          [](Pattern& m) { m.align = CausalAlign::bottom_right; });
    }
    add("band_ignored", "without the causal mask or window", [](Pattern& m) { m.remove_window(); });
  }
  if (mask.left_bounded() != mask.right_bounded()) {
    add("unbounded_end_as_width", "with a window whose unbounded ends are taken for widths of -1",
        [](Pattern& m) {
          m.set_window(m.left_bounded() ? m.window_left : -1,
                       m.right_bounded() ? m.window_right : -1);
        });
  }
  if (mask.offset) {
    add("negative_end_unbounded", "with a window whose negative ends are taken for unbounded",
        [](Pattern& m) {
          const auto end = [](std::int64_t width) {
            return width < 0 ? Pattern::kUnbounded : width;
          };
          m.set_window(end(m.window_left), end(m.window_right));
        });
    add("negative_end_at_diagonal", "with a window whose negative ends are taken for 0",
        [](Pattern& m) {
          const auto end = [](bool bounded, std::int64_t width) {
            return bounded ? std::max<std::int64_t>(width, 0) : Pattern::kUnbounded;
          };
          m.set_window(end(m.left_bounded(), m.window_left),
                       end(m.right_bounded(), m.window_right));
        });
  }
  if (mask.window_right >= 0) {
    add("causal_one_more", "where the causal mask lets every query see one future key",
        [](Pattern& m) { m.window_right = m.window_right == 0 ? 1 : m.window_right; });
    if (mask.window_right == 0) {
      add("causal_diagonal_hidden", "where the causal mask hides each query's own key",
          [](Pattern& m) {
            m.set_window(m.left_bounded() ? m.window_left : Pattern::kUnbounded, -1);
          });
    }
    add("right_one_more", "where every query sees one key more to the right",
        [](Pattern& m) { ++m.window_right; });
  }
  if (mask.window_right > 0) {
    add("right_one_fewer", "where every query sees one key fewer to the right",
        [](Pattern& m) { --m.window_right; });
  }
  if (mask.window_left >= 0) {
    add("left_one_more", "where the window holds one key more to the left",
        [](Pattern& m) { ++m.window_left; });
  }
  if (mask.window_left > 0) {
    add("left_one_fewer", "where the window holds one key fewer to the left",
        [](Pattern& m) { --m.window_left; });
  }
  if (!mask.key_lengths.empty()) {
    add("key_lengths_ignored", "with all keys, whatever the key lengths say",
        [](Pattern& m) { m.key_lengths.clear(); });
    const auto first = [](Pattern& m) {
      std::fill(m.key_lengths.begin(), m.key_lengths.end(), m.key_lengths.front());
    };
    add("first_key_length", "with the first key length for every batch entry", first);
    if (problem.seqlen_q == 1) {
      add("first_key_length_for_one_query",
          "with the first key length for every batch entry, where there is one query", first);
    }
  }
  if (mask.boolean) {
    add("boolean_mask_ignored", "without the boolean mask",
        [](Pattern& m) { m.boolean = nullptr; });
    if (mask.banded() && !mask.packed() && mask.key_lengths.empty()) {
      add("either_mask", "where a key is seen that the window or the boolean mask lets through",
          [&](Pattern& m) { m = either_of(problem); });
    }
  }
  if (mask.boolean || mask.banded()) {
    add("mask_ignored", "without any mask", [](Pattern& m) {
      m.boolean = nullptr;
      m.remove_window();
    });
  }
  return mistakes;
}

}  // namespace attest::proptest
