// TPU chips from v2 to TPU7x as one table with sources, and the slices of them that can be rented.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace capibara::tpu {

// Figures of one chip, as the vendor prints them unless `sources` says otherwise.
struct Chip {
  const char* name;                           // v4, v5e, ...
  const char* device_kind;                    // as JAX prints it
  const char* family;                         // in libtpu's topology names
  const char* config;                         // libtpu's chip_config_name
  double bf16_tflops, int8_tops, fp8_tflops;  // of a chip; 0: no such units
  double hbm_gb;                              // of a chip, as printed
  double usable_hbm_gib;                      // of one device: what libtpu 0.0.51 plans with
  double hbm_gbps;                            // of a chip, GB/s
  double ici_link_gbps;                       // one direction, usable, GB/s
  double dcn_gbps;                            // of a chip, GB/s
  double pcie_gbps;                           // of a chip, GB/s
  int dimensions;                             // of the torus
  int cores, devices;                         // of a chip: TensorCores, and devices as JAX counts them
  int mxu_size;
  double vmem_mib;  // of a core
  double clock_ghz;
  int pod_chips;
  bool named_by_cores;  // v4-32 are 32 cores, v5e-16 are 16 chips
  const char* sources;
};

// All generations, oldest first.
const std::vector<Chip>& chips();
// The chip of this name (v5e, v5litepod, TPU v5 lite, trillium ...). Raises ValueError that lists the names.
const Chip& find_chip(std::string_view name);

// Chips that are wired together and rented as a unit.
struct Slice {
  const Chip* chip = nullptr;
  std::vector<int> shape;  // chips along each dimension of the torus
  int slices = 1;          // number of equal slices, joined by the data centre's network

  int chips() const;    // in all slices
  int devices() const;  // as JAX counts them
  int chips_per_slice() const;
  int hosts() const;                     // of all slices
  std::vector<int> host_bounds() const;  // chips of one host
  std::vector<bool> wraps() const;       // true for each dimension that is a ring
  int links() const;                     // between chips, of all slices
  std::string name() const;              // v4-32, 2x v5e-256
  std::string topology() const;          // v4:2x2x4, the name used by libtpu
  double hbm_gib() const;                // usable by one device
};

// The slice of this name: v4-32, v5litepod-16, tpu7x-4x4x4, v4:2x2x4, 2x v5e-256. Raises ValueError listing the choices
// sizes that cannot be rented.
Slice find_slice(std::string_view name);
// The slice of this many chips; an empty topology means the most cubic one. Raises ValueError as find_slice does.
Slice slice_of(const Chip& chip, int chips, std::string_view topology = "");
// The sizes in chips that can be rented.
std::vector<int> slice_sizes(const Chip& chip);

// One device of a slice, in libtpu's order: host by host.
struct SliceDevice {
  int id, host;
  std::array<int, 3> coordinates;
  int core;
};
// The devices of one slice as libtpu lists them.
std::vector<SliceDevice> slice_devices(const Slice& slice);

}  // namespace capibara::tpu
