// A channel through memory that the processes of one node share: each fills its own slot, all read each other's.
//
// Every call is a series of rounds: wait until no one reads this slot any more, fill it, announce it, wait for the
// others, read. Each process alternates between two slots, so that one can be filled while the other is still read.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include <capibara/error.h>

#include "core/processes/channel.h"

namespace capibara::processes {

namespace {

constexpr std::size_t slot_bytes = 2 << 20;
constexpr std::size_t one_round_bytes = 16 << 10;  // below it each process reduces everything: one round instead of two

struct Header {
  alignas(64) std::atomic<uint64_t> arrived;   // the last round that it has filled
  alignas(64) std::atomic<uint64_t> finished;  // the last round that it has read
  alignas(64) uint64_t signatures[2];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);
constexpr std::size_t header_bytes = 4096;

class WindowChannel final : public Channel {
 public:
  WindowChannel(std::vector<void*> bases, int position, const Progress& progress)
      : Channel(static_cast<int>(bases.size()), position), progress_(progress), bases_(std::move(bases)) {
    Header& own = *new (bases_[static_cast<std::size_t>(position_)]) Header;
    own.arrived = own.finished = 0;
  }

  void begin(uint64_t signature) override { signature_ = signature; }
  void barrier() override {
    round([](std::byte*) {}, [](auto&) {});
  }
  void all_gather(const std::byte* from, std::byte* to, std::size_t bytes) override {
    in_chunks(bytes, slot_bytes, [&](std::size_t first, std::size_t size) {
      round([&](std::byte* slot) { copy(slot, from + first, size); },
            [&](const Slots& slots) {
              for (std::size_t i = 0; i < slots.size(); ++i) copy(to + i * bytes + first, slots[i], size);
            });
    });
  }
  void all_to_all(const std::byte* from, std::byte* to, std::size_t bytes) override {
    in_chunks(bytes, slot_bytes / count(), [&](std::size_t first, std::size_t size) {
      round(
          [&](std::byte* slot) {
            for (std::size_t i = 0; i < count(); ++i) copy(slot + i * size, from + i * bytes + first, size);
          },
          [&](const Slots& slots) {
            for (std::size_t i = 0; i < count(); ++i) copy(to + i * bytes + first, slots[i] + own() * size, size);
          });
    });
  }
  void broadcast(std::byte* data, std::size_t bytes, int root) override {
    in_chunks(bytes, slot_bytes, [&](std::size_t first, std::size_t size) {
      round(
          [&](std::byte* slot) {
            if (position_ == root) copy(slot, data + first, size);
          },
          [&](const Slots& slots) {
            if (position_ != root) copy(data + first, slots[static_cast<std::size_t>(root)], size);
          });
    });
  }
  void permute(const std::byte* from, std::byte* to, std::size_t bytes, int source, int target) override {
    in_chunks(bytes, slot_bytes, [&](std::size_t first, std::size_t size) {
      round(
          [&](std::byte* slot) {
            if (target >= 0) copy(slot, from + first, size);
          },
          [&](const Slots& slots) {
            if (source >= 0)
              copy(to + first, slots[static_cast<std::size_t>(source)], size);
            else
              std::memset(to + first, 0, size);
          });
    });
  }
  void reduce(const Reduce& what, DType wire, const std::byte* from, std::byte* to) override {
    const auto in = static_cast<std::size_t>(storage_size(wire)),
               out = static_cast<std::size_t>(storage_size(what.dtype));
    in_chunks(
        static_cast<std::size_t>(what.count), slot_bytes / std::max(in, out), [&](std::size_t first, std::size_t size) {
          auto fill = [&](std::byte* slot) { copy(slot, from + first * in, size * in); };
          if (size * in <= one_round_bytes) {
            return round(fill, [&](const Slots& slots) { combine(what, wire, slots, 0, size, to + first * out); });
          }
          // Each process reduces one part of the chunk, then all read the parts.
          const std::size_t part = (size + count() - 1) / count();
          auto part_of = [&](std::size_t i) {
            return std::pair(std::min(size, i * part), std::min(size, (i + 1) * part));
          };
          const auto [begin, end] = part_of(own());
          std::byte* result = to + (first + begin) * out;
          round(fill, [&, begin = begin, end = end](const Slots& slots) {
            combine(what, wire, slots, begin, end - begin, result);
          });
          round([&, begin = begin, end = end](std::byte* slot) { copy(slot, result, (end - begin) * out); },
                [&](const Slots& slots) {
                  for (std::size_t i = 0; i < count(); ++i) {
                    const auto [theirs, last] = part_of(i);
                    if (i != own()) copy(to + (first + theirs) * out, slots[i], (last - theirs) * out);
                  }
                });
        });
  }
  void reduce_scatter(const Reduce& what, DType wire, const std::byte* from, std::byte* to) override {
    const auto in = static_cast<std::size_t>(storage_size(wire)),
               out = static_cast<std::size_t>(storage_size(what.dtype));
    const std::size_t part = static_cast<std::size_t>(what.count) / count();
    in_chunks(part, slot_bytes / in / count(), [&](std::size_t first, std::size_t size) {
      round(
          [&](std::byte* slot) {
            for (std::size_t i = 0; i < count(); ++i)
              copy(slot + i * size * in, from + (i * part + first) * in, size * in);
          },
          [&](const Slots& slots) { combine(what, wire, slots, own() * size, size, to + first * out); });
    });
  }

 private:
  using Slots = std::vector<const std::byte*>;

  std::size_t count() const { return static_cast<std::size_t>(size_); }
  std::size_t own() const { return static_cast<std::size_t>(position_); }
  Header& header(std::size_t i) const { return *static_cast<Header*>(bases_[i]); }
  std::byte* slot(std::size_t i) const {
    return static_cast<std::byte*>(bases_[i]) + header_bytes + round_ % 2 * slot_bytes;
  }
  static void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes) std::memcpy(to, from, bytes);
  }
  // At least one chunk, so that all processes meet even if nothing moves.
  template <class Each>
  static void in_chunks(std::size_t total, std::size_t chunk, const Each& each) {
    for (std::size_t first = 0; first == 0 || first < total; first += chunk)
      each(first, std::min(chunk, total - first));
  }
  void combine(const Reduce& what, DType wire, const Slots& slots, std::size_t first, std::size_t size,
               std::byte* to) const {
    Slots blocks = slots;
    for (const std::byte*& block : blocks) block += first * static_cast<std::size_t>(storage_size(wire));
    combine_blocks(what.kind, wire, blocks, static_cast<int64_t>(size), what.dtype, to);
  }
  template <class Flag>
  void wait_for(const Flag& flag, uint64_t number) const {
    for (std::size_t i = 0; i < count(); ++i) {
      progress_.until([&] { return (header(i).*flag).load(std::memory_order_acquire) >= number; });
    }
  }
  template <class Fill, class Read>
  void round(const Fill& fill, const Read& read) {
    ++round_;
    if (round_ > 2) wait_for(&Header::finished, round_ - 2);
    Header& mine = header(own());
    fill(slot(own()));
    mine.signatures[round_ % 2] = signature_;
    mine.arrived.store(round_, std::memory_order_release);
    wait_for(&Header::arrived, round_);
    Slots slots;
    for (std::size_t i = 0; i < count(); ++i) {
      if (header(i).signatures[round_ % 2] != signature_) throw Mismatch{static_cast<int>(i)};
      slots.push_back(slot(i));
    }
    read(slots);
    mine.finished.store(round_, std::memory_order_release);
  }

  const Progress& progress_;
  const std::vector<void*> bases_;
  uint64_t round_ = 0, signature_ = 0;
};

}  // namespace

std::unique_ptr<Channel> make_window_channel(const mpi::Table& mpi, mpi::Group* group, int size, int position,
                                             const Progress& progress) {
  std::vector<void*> bases(static_cast<std::size_t>(size));
  if (mpi.make_window(group, header_bytes + 2 * slot_bytes, bases.data())) return nullptr;
  auto channel = std::make_unique<WindowChannel>(std::move(bases), position, progress);
  make_message_channel(mpi, group, size, position, progress)->barrier();  // all headers are made
  return channel;
}

}  // namespace capibara::processes
