// Copies a .npy or .npz file: `FROM TO [DTYPE]` reads the arrays of one, prints their types and writes them to the
// other. DTYPE is the type of elements that NumPy stores as bytes without a type.
#include <capibara/config.h>
#include <capibara/error.h>
#include <capibara/npy.h>

#include <iostream>
#include <string>

using namespace capibara;

int main(int count, char** words) {
  try {
    const std::string from = words[1], to = words[2];
    const std::optional<DType> raw = count > 3 ? dtype_from_name(words[3]) : std::nullopt;
    jax::config::update("jax_enable_x64", from.find("x64") != from.npos);
    if (from.ends_with(".npz")) {
      const std::map<std::string, Array> arrays = load_npz(from, raw);
      for (const auto& [name, array] : arrays) std::cout << name << " " << to_string(array.type()) << "\n";
      save_npz(to, arrays);
    } else {
      const Array array = load_npy(from, raw);
      std::cout << to_string(array.type()) << "\n";
      save_npy(to, array);
    }
  } catch (const ValueError& error) {
    std::cout << "ValueError: " << error.what() << "\n";
    return 1;
  }
}
