// Addresses, loads and stores: contiguous, reversed, pairs two apart, transposed squares, strided or gathered by lane.
#include <stdexcept>

#include <llvm/IR/MDBuilder.h>

#include "backends/cpu/llvm/function_emitter.h"

namespace capibara::cpu {

namespace {

// Above this many buffers the alias lists cost more than they gain.
constexpr std::size_t max_described_buffers = 48;

llvm::Align alignment(llvm::Type* element) { return llvm::Align(element->getScalarSizeInBits() / 8); }

}  // namespace

// Loads the parameters' pointers, allocates the function's own buffers, and declares which accesses cannot overlap.
void FunctionEmitter::describe_buffers() {
  const std::size_t count = function_.buffers.size();
  bases_.assign(count, nullptr);
  std::size_t parameter = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (function_.buffers[i].local) {
      auto* room = b_.CreateAlloca(llvm::ArrayType::get(
          b_.getInt8Ty(), static_cast<uint64_t>(std::max<int64_t>(1, function_.buffers[i].bytes))));
      room->setAlignment(llvm::Align(64));
      bases_[i] = room;
      continue;
    }
    // A function with calls has many buffers and uses each only a few times: it loads them where needed.
    if (!analysis_.calls()) {
      bases_[i] = b_.CreateLoad(b_.getPtrTy(), b_.CreateConstGEP1_64(b_.getPtrTy(), out_->getArg(1), parameter));
    }
    ++parameter;
  }
  if (count < 2 || count > max_described_buffers || analysis_.calls()) return;
  llvm::MDBuilder metadata(context_);
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain();
  std::vector<llvm::Metadata*> scopes;
  for (std::size_t i = 0; i < count; ++i) scopes.push_back(metadata.createAnonymousAliasScope(domain));
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<llvm::Metadata*> others;
    for (std::size_t j = 0; j < count; ++j) {
      bool apart = !analysis_.is_constant_buffer(static_cast<int32_t>(i)) ||
                   !analysis_.is_constant_buffer(static_cast<int32_t>(j));
      if (i != j && apart) others.push_back(scopes[j]);
    }
    scopes_of_buffer_.push_back(llvm::MDNode::get(context_, {scopes[i]}));
    others_of_buffer_.push_back(others.empty() ? nullptr : llvm::MDNode::get(context_, others));
  }
}

template <class Access>
Access* FunctionEmitter::described(Access* access, int32_t buffer) {
  if (scopes_of_buffer_.empty()) return access;
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, scopes_of_buffer_[static_cast<std::size_t>(buffer)]);
  if (llvm::MDNode* others = others_of_buffer_[static_cast<std::size_t>(buffer)]) {
    access->setMetadata(llvm::LLVMContext::MD_noalias, others);
  }
  return access;
}

llvm::Value* FunctionEmitter::base(int32_t buffer) {
  if (llvm::Value* known = bases_.at(static_cast<std::size_t>(buffer))) return known;
  uint64_t parameter = 0;
  for (int32_t i = 0; i < buffer; ++i) parameter += !function_.buffers[static_cast<std::size_t>(i)].local;
  auto* loaded = b_.CreateLoad(b_.getPtrTy(), b_.CreateConstGEP1_64(b_.getPtrTy(), out_->getArg(1), parameter));
  loaded->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
  return loaded;
}

llvm::Value* FunctionEmitter::plus(llvm::Value* pointer, llvm::Type* element, const std::vector<Term>& terms) {
  llvm::Value* sum = nullptr;
  for (const Term& term : terms) {
    llvm::Value* part = scalar(term.index);
    if (term.factor != 1) part = b_.CreateMul(part, index(term.factor));
    sum = sum ? b_.CreateAdd(sum, part) : part;
  }
  return sum ? b_.CreateGEP(element, pointer, sum) : pointer;
}

// The loop-invariant part of a sum is added before that loop.
llvm::Value* FunctionEmitter::pointer(int32_t buffer, llvm::Type* element, const std::vector<Term>& terms,
                                      std::size_t level) {
  llvm::Value* start = bases_.at(static_cast<std::size_t>(buffer));
  if (!start) return plus(base(buffer), element, terms);
  std::vector<Term> own, outer;
  for (const Term& term : terms) {
    (slots_[static_cast<std::size_t>(term.index)].level >= level ? own : outer).push_back(term);
  }
  if (!outer.empty()) {
    std::vector<std::pair<Value, int64_t>> key;
    for (const Term& term : outer) key.emplace_back(term.index, term.factor);
    llvm::Value*& known = scopes_[level - 1].pointers[{buffer, element, std::move(key)}];
    if (!known) {
      llvm::IRBuilderBase::InsertPointGuard guard(b_);
      b_.SetInsertPoint(scopes_[level - 1].before);
      known = pointer(buffer, element, outer, level - 1);
    }
    start = known;
  }
  return plus(start, element, own);
}

Place FunctionEmitter::place(const Address& address, llvm::Type* element) {
  Place result;
  std::vector<Term> plain;
  for (const Term& term : address.terms) {
    const Kind kind = lanes_ > 1 ? analysis_.kind(term.index) : Kind::uniform;
    if (kind == Kind::varying) {
      result.gathered.push_back(term);
      continue;
    }
    if (kind == Kind::affine) result.step += analysis_.step(term.index) * term.factor;
    plain.push_back(term);
  }
  result.pointer = pointer(address.buffer, element, plain, scopes_.size());
  if (address.offset != 0) result.pointer = b_.CreateGEP(element, result.pointer, index(address.offset));
  return result;
}

llvm::Value* FunctionEmitter::lane_pointer(const Place& place, llvm::Type* element, int lane) {
  llvm::Value* sum = nullptr;
  for (const Term& term : place.gathered) {
    llvm::Value* part = b_.CreateExtractElement(vector(term.index), static_cast<uint64_t>(lane));
    if (term.factor != 1) part = b_.CreateMul(part, index(term.factor));
    sum = sum ? b_.CreateAdd(sum, part) : part;
  }
  llvm::Value* pointer = sum ? b_.CreateGEP(element, place.pointer, sum) : place.pointer;
  return place.step * lane == 0 ? pointer : b_.CreateGEP(element, pointer, index(place.step * lane));
}

llvm::Value* FunctionEmitter::load_one(llvm::Type* loaded, llvm::Value* pointer, const Address& address) {
  auto* access = described(b_.CreateAlignedLoad(loaded, pointer, alignment(loaded->getScalarType())), address.buffer);
  if (analysis_.is_constant_buffer(address.buffer)) {
    access->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
  }
  return access;
}

void FunctionEmitter::store_one(llvm::Value* value, llvm::Value* pointer, const Address& address) {
  described(b_.CreateAlignedStore(value, pointer, alignment(value->getType()->getScalarType())), address.buffer);
}

// Prefetches a vector that will be read soon; it may be past the end of the buffer.
void FunctionEmitter::prefetch(llvm::Value* pointer, llvm::Type* element, int64_t ahead) {
  constexpr int64_t cache_line = 64;
  const int64_t bytes = element->getScalarSizeInBits() / 8 * lanes_;
  llvm::Value* start = b_.CreatePtrAdd(pointer, index(ahead * (element->getScalarSizeInBits() / 8)));
  for (int64_t offset = 0; offset < bytes; offset += cache_line) {
    llvm::Value* line = offset == 0 ? start : b_.CreatePtrAdd(start, index(offset));
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                       {line, b_.getInt32(0), b_.getInt32(2), b_.getInt32(1)});
  }
}

llvm::Value* FunctionEmitter::load_lanes(const Address& address, llvm::Type* element) {
  Place from = place(address, element);
  if (from.gathered.empty() && (from.step == 1 || from.step == -1)) {
    if (from.step == 1 && address.ahead != 0) prefetch(from.pointer, element, address.ahead);
    if (from.step == 1) return load_one(widened(element), from.pointer, address);
    llvm::Value* first = b_.CreateGEP(element, from.pointer, index(1 - lanes_));
    std::vector<int> reversed;
    for (int lane = lanes_ - 1; lane >= 0; --lane) reversed.push_back(lane);
    return b_.CreateShuffleVector(load_one(widened(element), first, address), reversed);
  }
  if (from.gathered.empty() && from.step == 2) {
    // Two vectors, of which the second ends at the last element needed, so that nothing past it is read.
    llvm::Value* low = load_one(widened(element), from.pointer, address);
    llvm::Value* high = load_one(widened(element), b_.CreateGEP(element, from.pointer, index(lanes_ - 1)), address);
    std::vector<int> even;
    for (int lane = 0; lane < lanes_ / 2; ++lane) even.push_back(2 * lane);
    for (int lane = 0; lane < lanes_ / 2; ++lane) even.push_back(lanes_ + 2 * lane + 1);
    return b_.CreateShuffleVector(low, high, even);
  }
  llvm::Value* result = llvm::PoisonValue::get(widened(element));
  for (int lane = 0; lane < lanes_; ++lane) {
    llvm::Value* one = load_one(element, lane_pointer(from, element, lane), address);
    result = b_.CreateInsertElement(result, one, static_cast<uint64_t>(lane));
  }
  return result;
}

namespace {

bool same_terms(const Address& a, const Address& b) {
  if (a.buffer != b.buffer || a.terms.size() != b.terms.size()) return false;
  for (std::size_t i = 0; i < a.terms.size(); ++i) {
    if (a.terms[i].index != b.terms[i].index || a.terms[i].factor != b.terms[i].factor) return false;
  }
  return true;
}

bool neighbours(const Address& a, const Address& b) {
  return same_terms(a, b) && (a.offset - b.offset == 1 || b.offset - a.offset == 1);
}

}  // namespace

// Elements from lane to lane; 0 if lanes gather.
int64_t FunctionEmitter::step_of(const Address& address) const {
  int64_t step = 0;
  for (const Term& term : address.terms) {
    if (analysis_.kind(term.index) == Kind::varying) return 0;
    if (analysis_.kind(term.index) == Kind::affine) step += analysis_.step(term.index) * term.factor;
  }
  return step;
}

// Real and imaginary parts: two loads with step 2, one element apart, in one block with no store to the buffer between
// them, become one load of both.
bool FunctionEmitter::load_pair(const Load& load) {
  if (!here_ || type(load.result) == Scalar::i1 || step_of(load.address) != 2) return false;
  llvm::Type* element = memory_type_of(type(load.result));
  for (std::size_t i = position_ + 1; i < here_->size(); ++i) {
    const auto& what = (*here_)[i].what;
    if (const auto* store = std::get_if<Store>(&what)) {
      if (store->address.buffer == load.address.buffer) return false;
    }
    if (std::holds_alternative<Load>(what)) {
      const Load& other = std::get<Load>(what);
      if (is_defined(other.result) || type(other.result) != type(load.result) ||
          !neighbours(load.address, other.address))
        continue;
      const bool lower = load.address.offset < other.address.offset;
      const Load &first = lower ? load : other, &second = lower ? other : load;
      llvm::Value* all = load_one(llvm::FixedVectorType::get(element, static_cast<unsigned>(2 * lanes_)),
                                  place(first.address, element).pointer, first.address);
      std::vector<int> even, odd;
      for (int lane = 0; lane < lanes_; ++lane) {
        even.push_back(2 * lane);
        odd.push_back(2 * lane + 1);
      }
      define(first.result, b_.CreateShuffleVector(all, even));
      define(second.result, b_.CreateShuffleVector(all, odd));
      return true;
    }
    if (!std::holds_alternative<Compute>(what) && !std::holds_alternative<Store>(what)) return false;
  }
  return false;
}

void FunctionEmitter::statement(const Load& load) {
  if (is_defined(load.result)) return;
  const Scalar loaded = type(load.result);
  llvm::Type* element = memory_type_of(loaded);
  const bool vectors = lanes_ > 1 && analysis_.kind(load.result) == Kind::varying;
  if (vectors && load_pair(load)) return;
  llvm::Value* value = vectors ? load_lanes(load.address, element)
                               : load_one(element, place(load.address, element).pointer, load.address);
  if (loaded == Scalar::i1) value = b_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
  define(load.result, value);
}

void FunctionEmitter::store_lanes(llvm::Value* value, const Address& address, llvm::Type* element) {
  Place to = place(address, element);
  if (to.gathered.empty() && to.step == 1) return store_one(value, to.pointer, address);
  if (to.gathered.empty() && to.step == -1) {
    std::vector<int> reversed;
    for (int lane = lanes_ - 1; lane >= 0; --lane) reversed.push_back(lane);
    return store_one(b_.CreateShuffleVector(value, reversed), b_.CreateGEP(element, to.pointer, index(1 - lanes_)),
                     address);
  }
  for (int lane = 0; lane < lanes_; ++lane) {
    store_one(b_.CreateExtractElement(value, static_cast<uint64_t>(lane)), lane_pointer(to, element, lane), address);
  }
}

// Two stores with step 2, one element apart, become one store of both, at the position of the second.
bool FunctionEmitter::store_pair(const Store& store) {
  if (step_of(store.address) != 2 || type(store.value) == Scalar::i1) return false;
  if (auto place_of_first = waiting_.find(&store); place_of_first != waiting_.end()) {
    const Store& other = *place_of_first->second;
    waiting_.erase(place_of_first);
    const bool lower = store.address.offset < other.address.offset;
    const Store &first = lower ? store : other, &second = lower ? other : store;
    std::vector<int> mixed;
    for (int lane = 0; lane < lanes_; ++lane) {
      mixed.push_back(lane);
      mixed.push_back(lane + lanes_);
    }
    llvm::Value* both = b_.CreateShuffleVector(vector(first.value), vector(second.value), mixed);
    store_one(both, place(first.address, memory_type_of(type(store.value))).pointer, first.address);
    return true;
  }
  for (std::size_t i = position_ + 1; i < here_->size(); ++i) {
    const auto& what = (*here_)[i].what;
    if (const auto* other = std::get_if<Store>(&what)) {
      if (other->address.buffer != store.address.buffer) continue;
      if (type(other->value) != type(store.value) || !neighbours(store.address, other->address)) return false;
      waiting_.emplace(other, &store);
      return true;
    }
    if (const auto* load = std::get_if<Load>(&what)) {
      if (load->address.buffer == store.address.buffer) return false;
    } else if (!std::holds_alternative<Compute>(what)) {
      return false;
    }
  }
  return false;
}

// Four stores far apart from lane to lane, one element apart from each other: lanes and stores are transposed in 4 x 4
// squares, so that whole vectors are written. Emitted at the position of the last store.
bool FunctionEmitter::store_square(const Store& store) {
  if (auto square = squares_.find(&store); square != squares_.end()) {
    if (square->second.back() == &store) write_square(square->second);
    return true;
  }
  const int64_t step = step_of(store.address);
  if (lanes_ % 4 != 0 || (step < 4 && step > -4) || type(store.value) == Scalar::i1) return false;
  std::vector<const Store*> found = {&store};
  for (std::size_t i = position_ + 1; i < here_->size() && found.size() < 4; ++i) {
    const auto& what = (*here_)[i].what;
    if (std::holds_alternative<Compute>(what)) continue;
    const auto* other = std::get_if<Store>(&what);
    if (!other || type(other->value) != type(store.value) || !same_terms(store.address, other->address)) return false;
    if (other->address.offset != store.address.offset + static_cast<int64_t>(found.size())) return false;
    found.push_back(other);
  }
  if (found.size() < 4) return false;
  for (const Store* each : found) squares_[each] = found;
  return true;
}

void FunctionEmitter::write_square(const std::vector<const Store*>& stores) {
  llvm::Type* element = memory_type_of(type(stores[0]->value));
  const Place to = place(stores[0]->address, element);
  for (int first = 0; first < lanes_; first += 4) {
    llvm::Value* rows[4];
    for (std::size_t i = 0; i < 4; ++i)
      rows[i] = b_.CreateShuffleVector(vector(stores[i]->value), {first, first + 1, first + 2, first + 3});
    // Interleaving halves twice transposes a 4 x 4 square.
    auto low = [&](llvm::Value* a, llvm::Value* b) { return b_.CreateShuffleVector(a, b, {0, 4, 1, 5}); };
    auto high = [&](llvm::Value* a, llvm::Value* b) { return b_.CreateShuffleVector(a, b, {2, 6, 3, 7}); };
    llvm::Value *even_low = low(rows[0], rows[2]), *odd_low = low(rows[1], rows[3]);
    llvm::Value *even_high = high(rows[0], rows[2]), *odd_high = high(rows[1], rows[3]);
    llvm::Value* columns[4] = {low(even_low, odd_low), high(even_low, odd_low), low(even_high, odd_high),
                               high(even_high, odd_high)};
    for (int lane = 0; lane < 4; ++lane)
      store_one(columns[lane], lane_pointer(to, element, first + lane), stores[0]->address);
  }
}

void FunctionEmitter::statement(const Store& store) {
  llvm::Type* element = memory_type_of(type(store.value));
  bool vectors = false;
  if (lanes_ > 1) {
    for (const Term& term : store.address.terms) vectors |= analysis_.kind(term.index) == Kind::varying;
    vectors |= step_of(store.address) != 0;
  }
  if (vectors && (store_pair(store) || store_square(store))) return;
  llvm::Value* value = vectors ? vector(store.value) : scalar(store.value);
  if (type(store.value) == Scalar::i1) value = b_.CreateZExt(value, vectors ? widened(element) : element);
  if (vectors)
    store_lanes(value, store.address, element);
  else
    store_one(value, place(store.address, element).pointer, store.address);
}

}  // namespace capibara::cpu
