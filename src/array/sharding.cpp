// Meshes and partition specifications.
#include <capibara/sharding.h>

namespace capibara {

int64_t Mesh::size() const {
  int64_t product = 1;
  for (int64_t size : axis_sizes) product *= size;
  return product;
}

Sharding::Sharding(Mesh mesh, PartitionSpec spec)
    : named_(std::make_shared<const Named>(Named{std::move(mesh), std::move(spec)})) {}

const Mesh& Sharding::mesh() const { return named_->mesh; }
const PartitionSpec& Sharding::spec() const { return named_->spec; }

bool operator==(const Sharding& a, const Sharding& b) {
  if (a.named_ == b.named_) return true;
  if (!a.named_ || !b.named_) return false;
  return a.mesh() == b.mesh() && a.spec() == b.spec();
}

}  // namespace capibara
