// Slices: rentable shapes, their names, hosts, rings and devices in libtpu's order.
//
// libtpu itself accepts shapes that cannot be rented (v4:4x8); the rules are those of the vendor's pages and of
// topologies in public use.
#include <capibara/error.h>
#include <capibara/tpu/chips.h>

#include <algorithm>
#include <set>

#include "tpu/words.h"

namespace capibara::tpu {

namespace {

using TorusShape = std::vector<int>;

int product(const TorusShape& shape) {
  int count = 1;
  for (const int size : shape) count *= size;
  return count;
}

bool is_cube_shape(const TorusShape& shape) {
  return shape.size() == 3 && std::all_of(shape.begin(), shape.end(), [](int size) { return size % 4 == 0; });
}

std::vector<TorusShape> small_shapes(const Chip& chip) {
  const std::string name = chip.name;
  if (name == "v2") return {{2, 2}, {4, 4}, {4, 8}, {8, 8}, {8, 16}, {16, 16}};
  if (name == "v3") return {{2, 2}, {4, 4}, {4, 8}, {8, 8}, {8, 16}, {16, 16}, {16, 32}, {32, 32}};
  if (chip.dimensions == 2) return {{1, 1}, {2, 2}, {2, 4}, {4, 4}, {4, 8}, {8, 8}, {8, 16}, {16, 16}};
  std::vector<TorusShape> shapes = {{2, 2, 1}, {2, 2, 2}, {2, 2, 4}, {2, 4, 4}};
  if (name == "tpu7x") shapes.insert(shapes.begin(), {1, 1, 1});
  return shapes;
}

// The maximum number of 4x4x4 cubes of one job: v4 4096 chips, v5p 16x16x24 is the largest scheduled shape but 140
// cubes exist, TPU7x 144.
int max_cubes(const Chip& chip) { return chip.pod_chips / 64; }

bool can_be_rented(const Chip& chip, const TorusShape& shape) {
  const std::vector<TorusShape> small = small_shapes(chip);
  if (std::find(small.begin(), small.end(), shape) != small.end()) return true;
  if (chip.dimensions == 2 || !is_cube_shape(shape) || product(shape) / 64 > max_cubes(chip)) return false;
  return std::string_view(chip.name) == "v4" || std::is_sorted(shape.begin(), shape.end());
}

// The shape with the shortest longest side; among several, the one with the smallest sum of sides.
TorusShape most_cubic(const Chip& chip, int count) {
  for (const TorusShape& shape : small_shapes(chip)) {
    if (product(shape) == count) return shape;
  }
  TorusShape best;
  if (chip.dimensions == 2 || count % 64 != 0) return best;
  const int cubes = count / 64;
  for (int a = 1; a * a * a <= cubes; ++a) {
    for (int b = a; cubes % a == 0 && a * b * b <= cubes; ++b) {
      if (cubes / a % b != 0) continue;
      const TorusShape shape = {4 * a, 4 * b, 4 * (cubes / a / b)};
      if (!can_be_rented(chip, shape)) continue;
      if (best.empty() || shape[2] < best[2] || (shape[2] == best[2] && shape[0] + shape[1] < best[0] + best[1]))
        best = shape;
    }
  }
  return best;
}

std::string number_name(const Chip& chip, int count) {
  return concat(chip.name, "-", chip.named_by_cores ? count * chip.cores : count);
}

[[noreturn]] void refuse(const Chip& chip, int count, std::string_view topology, std::string_view given) {
  std::vector<std::string> choices;
  std::vector<int> sizes = slice_sizes(chip);
  std::stable_sort(sizes.begin(), sizes.end(), [&](int a, int b) { return std::abs(a - count) < std::abs(b - count); });
  sizes.resize(std::min<std::size_t>(sizes.size(), 6));
  std::sort(sizes.begin(), sizes.end());
  for (const int size : sizes)
    choices.push_back(concat(number_name(chip, size), " = ", size, " chips = ", shape_text(most_cubic(chip, size))));
  const std::string shape = topology.empty() ? "" : concat(" as ", topology);
  const std::string rule = chip.dimensions == 3 && !topology.empty() && read_shape(topology).size() != 3
                               ? concat("; a ", chip.name, " slice has three dimensions")
                               : std::string();
  throw ValueError(concat("tpu: '", given, "': ", count, " ", chip.name, " chips", shape, " cannot be rented", rule,
                          "; near it are ", joined(choices, ", ")));
}

}  // namespace

int Slice::chips_per_slice() const { return product(shape); }
int Slice::chips() const { return slices * chips_per_slice(); }
int Slice::devices() const { return chips() * chip->devices; }

std::vector<int> Slice::host_bounds() const {
  if (chips_per_slice() == 1) return {1, 1, 1};
  return {2, 2, 1};
}

int Slice::hosts() const { return std::max(1, chips_per_slice() / 4) * slices; }

std::vector<bool> Slice::wraps() const {
  std::vector<bool> rings;
  for (const int size : shape) {
    rings.push_back(chip->dimensions == 3 ? is_cube_shape(shape)
                                          : size == (std::string_view(chip->name) == "v3" ? 32 : 16));
  }
  return rings;
}

int Slice::links() const {
  const std::vector<bool> rings = wraps();
  int links = 0;
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    const int along = shape[dim] - (rings[dim] && shape[dim] > 2 ? 0 : 1);  // a ring of two chips has one link
    links += chips_per_slice() / shape[dim] * along;
  }
  return links * slices;
}

std::string Slice::name() const {
  const std::string one = number_name(*chip, chips_per_slice());
  return slices == 1 ? one : concat(slices, "x ", one);
}

std::string Slice::topology() const { return concat(chip->family, ":", shape_text(shape)); }
double Slice::hbm_gib() const { return chip->usable_hbm_gib; }

std::vector<int> slice_sizes(const Chip& chip) {
  std::set<int> sizes;
  for (const TorusShape& shape : small_shapes(chip)) sizes.insert(product(shape));
  for (int cubes = 1; chip.dimensions == 3 && cubes <= max_cubes(chip); ++cubes) {
    if (!most_cubic(chip, 64 * cubes).empty()) sizes.insert(64 * cubes);
  }
  return {sizes.begin(), sizes.end()};
}

Slice slice_of(const Chip& chip, int count, std::string_view topology) {
  Slice slice;
  slice.chip = &chip;
  slice.shape = topology.empty() ? most_cubic(chip, count) : read_shape(topology);
  const std::string given = topology.empty() ? number_name(chip, count) : std::string(topology);
  if (slice.shape.empty() || product(slice.shape) != count || !can_be_rented(chip, slice.shape))
    refuse(chip, count, topology, given);
  return slice;
}

Slice find_slice(std::string_view name) {
  std::string_view rest = name;
  int slices = 1;
  if (const std::size_t space = rest.find("x "); space != std::string_view::npos && space > 0 && space < 5) {
    const std::vector<int> count = read_shape(rest.substr(0, space));
    if (count.size() == 1) {
      slices = count[0];
      rest = rest.substr(space + 2);
    }
  }
  const std::size_t end = rest.find_last_of(":-=");
  if (end == std::string_view::npos || end + 1 == rest.size()) {
    throw ValueError(
        concat("tpu: '", name, "' names no slice; write v5e-16, v4-32, v4:2x2x4, tpu7x-4x4x4 or 2x v5e-256"));
  }
  const Chip& chip = find_chip(rest.substr(0, end));
  const std::string_view size = rest.substr(end + 1);
  const std::vector<int> numbers = read_shape(size);
  if (numbers.empty())
    throw ValueError(concat("tpu: '", name, "' needs a number or a shape after the chip's name, got '", size, "'"));
  Slice slice;
  if (numbers.size() > 1) {
    slice = slice_of(chip, product(numbers), size);
  } else {
    const int per_chip = chip.named_by_cores ? chip.cores : 1;
    if (numbers[0] % per_chip != 0 || most_cubic(chip, numbers[0] / per_chip).empty())
      refuse(chip, numbers[0] / per_chip, "", name);
    slice = slice_of(chip, numbers[0] / per_chip);
  }
  slice.slices = slices;
  return slice;
}

std::vector<SliceDevice> slice_devices(const Slice& slice) {
  const std::vector<int> bounds = slice.host_bounds();
  std::array<int, 3> size = {1, 1, 1}, host = {1, 1, 1}, hosts = {1, 1, 1};
  for (std::size_t d = 0; d < slice.shape.size(); ++d) size[d] = slice.shape[d];
  for (std::size_t d = 0; d < 3; ++d) {
    host[d] = std::min(bounds[d], size[d]);
    hosts[d] = size[d] / host[d];
  }
  std::vector<SliceDevice> devices;
  const int per_chip = slice.chip->devices;
  for (int h = 0; h < hosts[0] * hosts[1] * hosts[2]; ++h) {
    const std::array<int, 3> corner = {h % hosts[0] * host[0], h / hosts[0] % hosts[1] * host[1],
                                       h / hosts[0] / hosts[1] * host[2]};
    for (int c = 0; c < host[0] * host[1] * host[2]; ++c) {
      const std::array<int, 3> at = {corner[0] + c % host[0], corner[1] + c / host[0] % host[1],
                                     corner[2] + c / host[0] / host[1]};
      const int number = (at[2] * size[1] + at[1]) * size[0] + at[0];
      for (int core = 0; core < per_chip; ++core) devices.push_back({number * per_chip + core, h, at, core});
    }
  }
  return devices;
}

}  // namespace capibara::tpu
