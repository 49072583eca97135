// Table rows for jax.ops.
#include <capibara/ops.h>

#include "library/table/families.h"

namespace capibara::library {

namespace ops = jax::ops;

namespace {

ops::SegmentOptions segments(const Arguments& a) {
  a.require_absent("out_sharding");
  return {.num_segments = a.optional_integer("num_segments"),
          .indices_are_sorted = a.flag("indices_are_sorted"),
          .unique_indices = a.flag("unique_indices"),
          .bucket_size = a.optional_integer("bucket_size"),
          .mode = a.text("mode")};
}

constexpr const char* signature =
    "data, segment_ids, num_segments=None, indices_are_sorted=False, unique_indices=False, bucket_size=None, "
    "mode=None, "
    "out_sharding=None";

const Function ops_functions[] = {
    {"segment_sum", signature,
     [](const Arguments& a) -> Value { return ops::segment_sum(a.array("data"), a.array("segment_ids"), segments(a)); },
     "The sums of the rows with equal segment numbers."},
    {"segment_prod", signature,
     [](const Arguments& a) -> Value {
       return ops::segment_prod(a.array("data"), a.array("segment_ids"), segments(a));
     },
     "The products of the rows with equal segment numbers."},
    {"segment_max", signature,
     [](const Arguments& a) -> Value { return ops::segment_max(a.array("data"), a.array("segment_ids"), segments(a)); },
     "The maxima of the rows with equal segment numbers."},
    {"segment_min", signature,
     [](const Arguments& a) -> Value { return ops::segment_min(a.array("data"), a.array("segment_ids"), segments(a)); },
     "The minima of the rows with equal segment numbers."},
};

}  // namespace

Family ops_segments() { return ops_functions; }

}  // namespace capibara::library
