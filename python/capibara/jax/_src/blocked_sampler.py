"""jax._src.blocked_sampler: random arrays drawn block by block, with values independent of the blocks."""
import operator

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara._modules import explain_missing


def blocked_fold_in(global_key, total_size, block_size, tile_size, block_index):
    """The keys of a block's tiles as nested lists: the key of a tile depends on its row-major index in the whole array."""
    tiles = [block // tile for block, tile in zip(block_size, tile_size, strict=True)]
    whole = [-(-total // tile) for total, tile in zip(total_size, tile_size, strict=True)]

    def keys(axis, number):
        if axis == len(tiles):
            return jax.random.fold_in(global_key, number)
        first = block_index[axis] * tiles[axis]
        return [keys(axis + 1, number * whole[axis] + first + i) for i in range(tiles[axis])]
    return keys(0, 0)


def sample_block(sampler_fn, keys, block_size, tile_size, *args, **kwargs):
    """A block drawn tile by tile with the keys of blocked_fold_in."""
    tiles = [operator.index(block) // operator.index(tile) for block, tile in zip(block_size, tile_size, strict=True)]

    def draw(keys, axis):
        if axis == len(tiles):
            return sampler_fn(keys, *args, shape=tuple(tile_size), **kwargs)
        return jnp.concatenate([draw(keys[i], axis + 1) for i in range(tiles[axis])], axis)
    return draw(keys, 0)


explain_missing(__name__)
