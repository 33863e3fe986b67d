#include "schedules/walks/resident_order.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include "core/mask/sparsity/row_classes.hpp"
#include "core/rng.hpp"

namespace attest::schedules {
namespace {

using Rows = std::vector<std::int64_t>;

std::size_t at(std::int64_t value) { return static_cast<std::size_t>(value); }

// Classes of residents, how many residents these are and the classes of visitors that each sees,
// and how many visitors those are.
struct ClassGraph {
  std::vector<std::vector<std::size_t>> seen;
  std::vector<std::int64_t> residents, visitors;
  bool operator==(const ClassGraph&) const = default;

  std::int64_t edges() const {
    std::int64_t sum = 0;
    for (const auto& list : seen) sum += static_cast<std::int64_t>(list.size());
    return sum;
  }
};

// The price of an order: visits, and over the visitors the sum of log(distance) from a class that
// it sees to the next.
class Price {
 public:
  using Sums = std::pair<std::int64_t, std::int64_t>;
  static constexpr std::int64_t kUnit = 1 << 16;  // a logarithm of 1

  Price(const ClassGraph& graph, std::int64_t length, std::int64_t gap)
      : graph_(graph), length_(length), gap_(gap), logarithms_(graph.seen.size() + 1) {
    for (const std::int64_t count : graph.visitors) fresh_.push_back({.count = count});
    for (std::size_t distance = 2; distance < logarithms_.size(); ++distance) {
      logarithms_[distance] =
          logarithms_[distance - 1] + kUnit / static_cast<std::int64_t>(distance - 1);
    }
  }

  Sums operator()(const Rows& order) {
    visitors_ = fresh_;
    std::int64_t visits = 0, distances = 0, begin = 0;
    for (std::size_t place = 0; place < order.size(); ++place) {
      const std::int64_t end = begin + graph_.residents[at(order[place])];
      for (const std::size_t index : graph_.seen[at(order[place])]) {
        Visitor& visitor = visitors_[index];
        if (visitor.last != kNever) distances += visitor.count * logarithms_[place - visitor.last];
        visitor.last = place;
        const std::int64_t room =
            std::min(visitor.begin + length_ + gap_ - begin, length_ - visitor.met);
        const std::int64_t met = std::clamp<std::int64_t>(room, 0, end - begin);
        visitor.met += met;
        const std::int64_t left = end - begin - met;
        if (left == 0) continue;
        // Mostly one visit, and a division is dear.
        const std::int64_t more = left <= length_ ? 1 : io::tiles(left, length_);
        const std::int64_t before = (more - 1) * length_;
        visits += visitor.count * more;
        visitor.begin = begin + met + before;
        visitor.met = left - before;
      }
      begin = end;
    }
    return {visits, distances};
  }

 private:
  static constexpr std::size_t kNever = ~std::size_t{0};

  // A class of them, the place at which it last saw a resident, and what it met in its last visit:
  // from where on, and how many; full before the first.
  struct Visitor {
    std::int64_t count;
    std::size_t last = kNever;
    std::int64_t begin = 0, met = std::numeric_limits<std::int64_t>::max();
  };

  const ClassGraph& graph_;
  std::int64_t length_, gap_;
  std::vector<Visitor> fresh_, visitors_;
  std::vector<std::int64_t> logarithms_;
};

// One of them to another place, two exchanged, or what lies between two turned around.
Rows moved(Rows order, Rng& rng) {
  const auto last = static_cast<std::int64_t>(order.size()) - 1;
  const std::int64_t a = rng.between(0, last), b = rng.between(0, last);
  const auto low = order.begin() + std::min(a, b), high = order.begin() + std::max(a, b);
  switch (rng.between(0, 4)) {
    case 0:
      std::iter_swap(low, high);
      break;
    case 1:
      std::reverse(low, high + 1);
      break;
    case 2:
    case 3:
      std::rotate(low, high, high + 1);
      break;
    default:
      std::rotate(low, low + 1, high + 1);
  }
  return order;
}

// By threshold accepting (Dueck and Scheuer 1990): a move is made unless it costs more than a
// threshold, which falls to nothing.
Rows searched_order(const ClassGraph& graph, std::int64_t length, std::int64_t gap) {
  constexpr std::int64_t kWork = std::int64_t{1} << 34, kStepsPerPair = 32;
  constexpr std::int64_t kVisit = 3 * Price::kUnit;  // against a logarithm of 1
  const auto classes = static_cast<std::int64_t>(graph.seen.size());
  Rows order(graph.seen.size());
  std::iota(order.begin(), order.end(), 0);
  const std::int64_t steps = std::min(kStepsPerPair * classes * classes,
                                      kWork / std::max<std::int64_t>(classes * graph.edges(), 1));
  if (classes < 3 || steps < classes) return order;
  Price price(graph, length, gap);
  const auto cost = [](const Price::Sums& sums) { return kVisit * sums.first + sums.second; };
  const std::int64_t visitors =
      std::accumulate(graph.visitors.begin(), graph.visitors.end(), std::int64_t{0});
  // Two visits of a class of visitors.
  const std::int64_t highest = 2 * kVisit * io::tiles(visitors, std::ssize(graph.visitors));
  Rng rng(1);
  Rows now = order, best = order;
  Price::Sums least = price(order);
  std::int64_t current = cost(least);
  for (std::int64_t step = 0; step < steps; ++step) {
    Rows next = moved(now, rng);
    const Price::Sums sums = price(next);
    if (cost(sums) > current + highest * (steps - step) / steps) continue;
    current = cost(sums);
    now.swap(next);
    if (sums < least) {
      least = sums;
      best = now;
    }
  }
  return best;
}

// The last searches: a search of tiles comes back to the same classes and lengths, and every
// schedule made of what it found does.
class FoundOrders {
 public:
  Rows order_of(const ClassGraph& graph, std::int64_t length, std::int64_t gap) {
    const std::lock_guard lock(mutex_);
    const auto known = std::find_if(found_.begin(), found_.end(), [&](const Found& found) {
      return found.length == length && found.gap == gap && found.graph == graph;
    });
    if (known != found_.end()) {
      std::rotate(found_.begin(), known, known + 1);
    } else {
      if (found_.size() == kKept) found_.pop_back();
      found_.push_front({graph, length, gap, searched_order(graph, length, gap)});
    }
    return found_.front().order;
  }

 private:
  static constexpr std::size_t kKept = 8;
  struct Found {
    ClassGraph graph;
    std::int64_t length, gap;
    Rows order;
  };

  std::mutex mutex_;
  std::deque<Found> found_;  // the last first
};

// Residents by what they see, and visitors by who sees them.
struct Classes {
  BooleanMatrix seen, sees;
  std::vector<Rows> residents, visitors;
};

std::optional<Classes> classes_of(const attest_problem& problem, Residents residents) {
  const std::int64_t q = problem.seqlen_q, k = problem.seqlen_k;
  const std::uint8_t* mask = problem.mask.boolean;
  if (mask == nullptr || io::Words(q) * k > kMostListedPairs) return std::nullopt;
  Classes classes{{q, k, {}}, {}, {}, {}};
  for (std::int64_t n = 0; n < q * k; ++n) classes.seen.entries.push_back(mask[n] != 0 ? 1 : 0);
  classes.sees = classes.seen.transposed();
  if (residents == Residents::keys) std::swap(classes.seen, classes.sees);
  classes.residents = row_classes(classes.seen);
  classes.visitors = row_classes(classes.sees);
  return classes;
}

}  // namespace

std::vector<std::int64_t> resident_order(const attest_problem& problem, Residents residents,
                                         std::int64_t length, std::int64_t gap) {
  const auto found = classes_of(problem, residents);
  if (!found) return {};
  const auto& [seen, sees, classes, visitors] = *found;
  ClassGraph graph;
  for (const Rows& rows : classes) {
    graph.seen.emplace_back();
    for (std::size_t visitor = 0; visitor < visitors.size(); ++visitor) {
      if (seen.row(rows.front())[at(visitors[visitor].front())] != 0) {
        graph.seen.back().push_back(visitor);
      }
    }
  }
  const auto count = [](const Rows& rows) { return static_cast<std::int64_t>(rows.size()); };
  std::transform(classes.begin(), classes.end(), std::back_inserter(graph.residents), count);
  std::transform(visitors.begin(), visitors.end(), std::back_inserter(graph.visitors), count);
  const std::int64_t most = std::max(problem.seqlen_q, problem.seqlen_k);
  static FoundOrders found_orders;
  std::vector<std::int64_t> order;
  for (const std::int64_t one : found_orders.order_of(graph, std::min(length, most), gap)) {
    order.insert(order.end(), classes[at(one)].begin(), classes[at(one)].end());
  }
  return order;
}

std::int64_t middle_block(const attest_problem& problem, Residents residents) {
  const auto found = classes_of(problem, residents);
  if (!found || found->residents.empty()) return 0;
  std::vector<std::int64_t> sizes;
  for (const Rows& rows : found->residents) sizes.push_back(std::ssize(rows));
  std::sort(sizes.begin(), sizes.end());
  return sizes[sizes.size() / 2];
}

std::int64_t gap_to_blocks(std::int64_t length, std::int64_t block) {
  if (block == 0 || length % block == 0) return 0;
  const std::int64_t missing = block - length % block;
  return missing <= length / 32 ? 2 * missing : 0;
}

}  // namespace attest::schedules
