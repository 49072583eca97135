// Opens libcrypto, which avoids a need for its headers, and signs with it.
#include "io/http/signing.h"

#include <dlfcn.h>

#include <cstdio>
#include <initializer_list>
#include <type_traits>

namespace {

// Functions of OpenSSL 3 (and 1.1) as its headers declare them, with its types left opaque.
struct Libcrypto {
  void* (*new_memory)(const void* bytes, int size) = nullptr;
  int (*free_memory)(void* memory) = nullptr;
  using PasswordQuestion = int (*)(char* to, int capacity, int writing, void* context);
  void* (*read_key)(void* memory, void** key, PasswordQuestion ask, void* context) = nullptr;
  void (*free_key)(void* key) = nullptr;
  void* (*new_context)() = nullptr;
  void (*free_context)(void* context) = nullptr;
  const void* (*sha256)() = nullptr;
  int (*sign_init)(void* context, void** key_context, const void* digest, void* engine, void* key) = nullptr;
  int (*sign)(void* context, unsigned char* to, std::size_t* size, const unsigned char* text,
              std::size_t text_size) = nullptr;
  bool complete = false;

  Libcrypto() {
    void* library = nullptr;
    for (const char* name : {"libcrypto.so.3", "libcrypto.so.1.1"}) {
      if (!library) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (!library) return;
    auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      return function != nullptr;
    };
    complete = find(new_memory, "BIO_new_mem_buf") && find(free_memory, "BIO_free") &&
               find(read_key, "PEM_read_bio_PrivateKey") && find(free_key, "EVP_PKEY_free") &&
               find(new_context, "EVP_MD_CTX_new") && find(free_context, "EVP_MD_CTX_free") &&
               find(sha256, "EVP_sha256") && find(sign_init, "EVP_DigestSignInit") && find(sign, "EVP_DigestSign");
  }
};

}  // namespace

std::size_t capibara_sign_rs256(const char* key, std::size_t key_size, const char* text, std::size_t size,
                                unsigned char* to, std::size_t capacity, char* reason, std::size_t reason_size) {
  static const Libcrypto crypto;
  if (!crypto.complete) {
    std::snprintf(reason, reason_size, "no libcrypto.so.3 is here to sign with; install libssl3");
    return 0;
  }
  void* memory = crypto.new_memory(key, static_cast<int>(key_size));
  // A key with a password is refused, without a prompt.
  void* loaded = memory ? crypto.read_key(
                              memory, nullptr, [](char*, int, int, void*) { return -1; }, nullptr)
                        : nullptr;
  void* context = loaded ? crypto.new_context() : nullptr;
  std::size_t written = capacity;
  const bool done = context && crypto.sign_init(context, nullptr, crypto.sha256(), nullptr, loaded) == 1 &&
                    crypto.sign(context, to, &written, reinterpret_cast<const unsigned char*>(text), size) == 1;
  if (!done) {
    std::snprintf(reason, reason_size, "%s",
                  loaded ? "the private key cannot sign" : "expected a private key in PEM without a password");
  }
  if (context) crypto.free_context(context);
  if (loaded) crypto.free_key(loaded);
  if (memory) crypto.free_memory(memory);
  return done ? written : 0;
}
