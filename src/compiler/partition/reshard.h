// Resharding: the cheapest path from one layout of an array to another, and the collectives along it.
#pragma once

#include <capibara/traits.h>

#include <map>

#include "compiler/partition/layout.h"

namespace capibara::sharding {

// An array on the devices: its layout, and the axes along which parts are still to be combined.
struct Placed {
  Layout layout;
  Axes pending;
  Monoid monoid = Monoid::add;  // of the pending axes
};

struct Move {
  enum class Kind : uint8_t {
    slice,     // each device keeps its part: nothing is sent
    gather,    // the innermost axes of a dimension
    exchange,  // all_to_all: an axis moves from one dimension to another
    permute,   // ppermute: parts of equal shape are exchanged
    combine,   // psum, pmax, pmin
    scatter,   // psum_scatter: summed, each device keeps its part
  };
  Kind kind;
  std::size_t dim = 0, other = 0;  // exchange: from `dim` to `other`
  Axes axes;
  Layout from, to;   // of the step
  double bytes = 0;  // received by each device
};

struct Plan {
  std::vector<Move> moves;
  double cost = 0;  // bytes, plus a small cost per step
};

class Resharder {
 public:
  explicit Resharder(const Mesh& mesh) : mesh_(mesh) {}

  const Plan& plan(const ArrayType& type, const Placed& from, const Layout& to);

 private:
  Plan search(const ArrayType& type, const Placed& from, const Layout& to) const;

  const Mesh& mesh_;
  std::map<std::string, Plan> known_;
};

std::string name_of(const Move& move, Monoid monoid);
// Applies one step to the array of this device, while the axes of the mesh are bound.
Array moved(const Mesh& mesh, const Array& x, const Move& move, Monoid monoid);
// The position of this device among the parts that these axes form.
Array position_along(const Mesh& mesh, const Axes& axes);
// The values of all devices along axes, combined.
Array combined_over(const Mesh& mesh, const Array& x, const Axes& axes, Monoid monoid);

}  // namespace capibara::sharding
