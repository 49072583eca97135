"""keras on its jax backend: a convolutional, a recurrent and an attention network trained, saved and loaded again."""

import os
import tempfile

os.environ["KERAS_BACKEND"] = "jax"

import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers  # noqa: E402

keras.utils.set_random_seed(0)
draws = np.random.RandomState(0)


def report(model, x, y, epochs=2):
    history = model.fit(x, y, batch_size=16, epochs=epochs, verbose=0, shuffle=False).history
    print({name: np.round(values, 4) for name, values in sorted(history.items())})
    print(np.round(model.predict(x[:3], verbose=0), 4), np.round(model.evaluate(x, y, verbose=0), 4))


# Images of any size: the shapes of layers are known before the sizes are.
image = keras.Input((None, None, 3))
hidden = layers.Conv2D(8, 3, strides=2, padding="same", activation="relu")(image)
hidden = layers.SeparableConv2D(8, 3)(layers.BatchNormalization()(hidden))
hidden = layers.Dropout(0.2)(layers.GlobalAveragePooling2D()(hidden))
model = keras.Model(image, layers.Dense(4)(hidden))
print([layer.output.shape for layer in model.layers])
model.compile(keras.optimizers.Adam(1e-2), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
report(model, draws.rand(64, 8, 8, 3).astype("float32"), draws.randint(0, 4, 64), epochs=3)

text = keras.Input((None,))
hidden = layers.Bidirectional(layers.LSTM(6, return_sequences=True))(layers.Embedding(20, 8, mask_zero=True)(text))
model = keras.Model(text, layers.Dense(1)(layers.GRU(5)(hidden)))
model.compile("rmsprop", "mse")
tokens = draws.randint(0, 20, (32, 7))
report(model, tokens, tokens.mean(1))

steps = keras.Input((6, 8))
hidden = layers.LayerNormalization()(steps + layers.MultiHeadAttention(2, 4)(steps, steps))
model = keras.Model(steps, layers.Dense(2, activation="softmax")(layers.Flatten()(layers.Conv1D(4, 2)(hidden))))
model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "categorical_crossentropy")
x = draws.rand(20, 6, 8).astype("float32")
report(model, x, np.eye(2)[draws.randint(0, 2, 20)])
with tempfile.TemporaryDirectory() as folder:
    model.save(os.path.join(folder, "model.keras"))
    loaded = keras.models.load_model(os.path.join(folder, "model.keras"))
print(np.abs(loaded.predict(x, verbose=0) - model.predict(x, verbose=0)).max())
