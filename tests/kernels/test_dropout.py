"""The random bits: what they depend on, and that they are random enough."""

import numpy as np
import pytest
import torch
from scipy import stats

from sharpen.kernels.dropout import layer_keys, member_keys, random_bits, relu_dropout, thresholds


def keys_at(seeds, epoch=0, layer=0):
    return layer_keys(member_keys(seeds), torch.tensor(epoch), layer)


def mix_in_python(word: int, key_1: int, key_2: int) -> int:
    """The hash in unbounded integers, an independent way to say it."""
    x = (word * 2654435769 + key_1) % 2**32
    x ^= x >> 16
    x = (x * 569420461 % 2**32) ^ (key_2 % 2**32)
    x ^= x >> 15
    x = x * 1935289751 % 2**32
    return x ^ (x >> 16)


def test_bits_are_the_hash_of_the_position():
    keys = keys_at([3, 4])
    bits = random_bits(keys, 7).numpy()
    for r in range(2):
        words = [mix_in_python(w, int(keys[r, 0]), int(keys[r, 1])) for w in range(4)]
        halves = [half for w in words for half in (w & 0xFFFF, w >> 16)][:7]
        assert bits[r].astype(np.uint16).tolist() == halves


def test_a_member_does_not_see_the_others():
    together = random_bits(keys_at([1, 2, 3]), 100)
    for r, seed in enumerate([1, 2, 3]):
        assert together[r].equal(random_bits(keys_at([seed]), 100)[0])


def test_every_coordinate_changes_the_bits():
    base = random_bits(keys_at([1]), 1000)
    for other in (keys_at([2]), keys_at([1], epoch=1), keys_at([1], layer=1)):
        share_equal = (random_bits(other, 1000) == base).float().mean()
        assert share_equal < 0.01


@pytest.mark.parametrize("p", [0.2, 0.5, 0.7])
def test_share_of_kept_elements(p):
    size = 200_000
    keep = random_bits(keys_at(range(4)), size) >= thresholds(torch.tensor([p] * 4))[:, None]
    # Binomial: 4 standard deviations.
    assert (keep.double().mean(1) - (1 - p)).abs().max() < 4 * (p * (1 - p) / size) ** 0.5


def test_bits_are_uniform_and_uncorrelated():
    bits = random_bits(keys_at([9]), 2**18)[0].numpy().astype(np.int64) + 32768
    assert stats.chisquare(np.bincount(bits // 256, minlength=256)).pvalue > 1e-4
    for lag in (1, 2, 64, 512):
        assert abs(np.corrcoef(bits[:-lag], bits[lag:])[0, 1]) < 4 / len(bits) ** 0.5
    for other in (keys_at([9], epoch=1), keys_at([9], layer=1), keys_at([10])):
        also = random_bits(other, 2**18)[0].numpy().astype(np.int64) + 32768
        assert abs(np.corrcoef(bits, also)[0, 1]) < 4 / len(bits) ** 0.5


def test_relu_dropout_drops_scales_and_differentiates():
    x = torch.randn(2, 5, 6, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(2, 6, dtype=torch.float64, requires_grad=True)
    p, keys = torch.tensor([0.5, 0.0], dtype=torch.float64), keys_at([1, 2])
    out, active = relu_dropout(x, bias, p, keys), (x + bias[:, None]).relu()
    kept = out[0] > 0
    torch.testing.assert_close(out[0][kept], 2 * active[0][kept])
    assert (kept <= (active[0] > 0)).all()
    assert kept.sum() < (active[0] > 0).sum()
    expected = random_bits(keys, 30)[0] >= thresholds(p)[0]
    assert kept.equal((active[0] > 0) & expected.view(5, 6))
    torch.testing.assert_close(out[1], active[1])
    assert torch.autograd.gradcheck(lambda x, b: relu_dropout(x, b, p, keys), (x, bias))
    assert torch.autograd.gradgradcheck(lambda x, b: relu_dropout(x, b, p, keys), (x, bias))


def test_nan_is_not_hidden():
    x = torch.full((1, 2, 2), torch.nan)
    assert relu_dropout(x, None, torch.tensor([0.0]), keys_at([1])).isnan().all()
