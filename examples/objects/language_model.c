/* Continues a text letter by letter: the decode step of a transformer trained with jax, with its weights in a
   memory-mapped file. Keys and values of the letters so far are passed from one call to the next. */
#include <fcntl.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "language_model.h"

enum { length = 64, width = 64, kept = 4 }; /* keys and values of two layers */

static alignas(LANGUAGE_MODEL_ARENA_ALIGNMENT) unsigned char arena[LANGUAGE_MODEL_ARENA_BYTES + 1];
static float cache[2][kept][length * width]; /* one is read while the other is written */

static const void *mapped(const char *path) {
  const int file = open(path, O_RDONLY);
  if (file < 0) return NULL;
  void *bytes = mmap(NULL, LANGUAGE_MODEL_WEIGHTS_BYTES, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  return bytes == MAP_FAILED ? NULL : bytes;
}

int main(int argc, char **argv) {
  const char *text = argc > 1 ? argv[1] : "It is a truth ";
  const void *weights = mapped("language_model.bin");
  if (!weights) {
    perror("language_model.bin");
    return 1;
  }
  int letter = 0, next = 0, place;
  const void *inputs[LANGUAGE_MODEL_INPUTS];
  void *outputs[LANGUAGE_MODEL_OUTPUTS];
  inputs[LANGUAGE_MODEL_IN_ARGS_1] = &letter;
  inputs[LANGUAGE_MODEL_IN_ARGS_2] = &place;
  outputs[LANGUAGE_MODEL_OUT_RESULT_0] = &next;
  for (place = 0; place < length; ++place) {
    letter = place < (int)strlen(text) ? text[place] & 127 : next;
    putchar(letter);
    for (int i = 0; i < kept; ++i) {
      inputs[LANGUAGE_MODEL_IN_ARGS_0_0_0 + i] = cache[place % 2][i];
      outputs[LANGUAGE_MODEL_OUT_RESULT_1_0_0 + i] = cache[1 - place % 2][i];
    }
    language_model(inputs, outputs, arena, weights);
  }
  putchar('\n');
  return 0;
}
