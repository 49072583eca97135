"""A small language model with attention, Mamba and experts learns a rhyme; then an optimizer alone minimizes a bowl."""

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import optimizers, training

text = "one two, buckle my shoe; three four, knock at the door. " * 40
tokenizer = training.Tokenizer.train(text, 280)
tokens = tokenizer.encode(text)
print(f"{len(text)} bytes, {len(tokens)} tokens of {tokenizer.vocabulary} kinds")

model = training.LanguageModel(vocabulary=280, width=32, hidden=48, layers=["attention+mlp", "mamba", "attention+moe"])
config = training.TrainerConfig(steps=40, batch=4, length=24, warmup=4, learning_rate=1e-2)
trainer = training.Trainer(config, model)
print(f"{model.parameter_count} parameters")
for step in range(40):
    starts = [(37 * step + 11 * row) % (len(tokens) - 25) for row in range(4)]
    report = trainer.step(jnp.array([tokens[start:start + 25] for start in starts], "int32"))
    if report["step"] % 10 == 0:
        print(f"step {report['step']} loss {report['loss']:.2f}")
for kind in ("float32", "bfloat16", "int8", "int4"):  # storage type of the weights while generating text
    weights = training.convert_weights(trainer.params, kind)
    generator = training.Generator(model, weights, 64)
    answer = generator.generate(tokenizer.encode("one two,"), max_new_tokens=20)
    print(f"{kind}, {sum(weight.nbytes for weight in weights.values())} bytes: one two,{tokenizer.decode(answer).decode()}")

adam = optimizers.adam(optimizers.cosine_decay_schedule(0.5, 30))


def bowl(x):
    return jnp.sum(x * x)


x = jnp.array([3.0, -4.0])
state = adam.init(x)
for _ in range(30):
    updates, state = adam.update(jax.grad(bowl)(x), state, x)
    x = optimizers.apply_updates(x, updates)
print(f"bowl {float(bowl(x)):.3f}")
