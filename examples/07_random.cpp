// Random numbers: keys instead of hidden state, the same draws as jax, and a Monte Carlo estimate.
#include <capibara/capibara.h>
#include <capibara/numpy/creation.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/reductions.h>

#include <iostream>

using capibara::Array;
namespace jax = capibara::jax;
namespace jnp = capibara::jax::numpy;
namespace random_ = capibara::jax::random;

// Counts random points of the unit square that fall inside the quarter disc.
Array inside(const Array& key) {
  Array points = random_::uniform(key, {.shape = {16, 2}});
  return jnp::sum(jnp::sum(jnp::square(points), {.axis = 1}) < 1.0f);
}

int main() {
  Array key = random_::key(42);
  std::cout << "a key draws the same again " << random_::normal(key, {.shape = {2}}) << " "
            << random_::normal(key, {.shape = {2}}) << "\n";

  // Use each key once; fold_in derives a new key from a key and a number.
  Array keys = random_::split(key, 3);
  std::cout << "first " << random_::uniform(keys(0), {.shape = {3}}) << "\n";
  std::cout << "dice " << random_::randint(keys(1), {8}, 1, 7) << "\n";
  std::cout << "shuffled " << random_::permutation(keys(2), jnp::arange(6)) << "\n";
  std::cout << "folded " << random_::bits(random_::fold_in(key, 7)) << "\n";

  Array logits = capibara::array<float>({0.0f, 1.0f, 2.0f});
  std::cout << "classes " << random_::categorical(keys(0), logits, {.shape = capibara::Shape{10}}) << "\n";
  std::cout << "coins " << random_::bernoulli(keys(1), {.p = 0.25f, .shape = capibara::Shape{6}}) << "\n";
  std::cout << "exponential " << random_::exponential(keys(2), {.shape = {2}}) << "\n";

  // Draws are pure functions of their keys, so they can be vmapped and jitted.
  Array counts = jax::jit(jax::vmap(inside))(random_::split(key, 20));
  std::cout << "in the disc " << counts << "\n";
  std::cout << "pi is about " << 4.0f * jnp::mean(counts) / 16.0f << "\n";
}
