"""torch.ops.aah from Python: gradients, fake tensors and torch.compile's rules, errors.

Usage: operator_test.py LIBAAH_OPS
"""

import sys
import unittest

import torch
from torch._subclasses.fake_tensor import FakeTensorMode


def inputs(dtype, batch=2, heads=4, kv_heads=2, tokens=9, head_dim=8):
    torch.manual_seed(0)

    def heads_inner(count):
        shape = (batch, tokens, count, head_dim)
        return torch.randn(shape, dtype=dtype).transpose(1, 2).requires_grad_()

    windows = torch.tensor([1, 3, 5, 100], dtype=torch.int32)
    return heads_inner(heads), heads_inner(kv_heads), heads_inner(kv_heads), windows


OPTIONS = [
    {},
    {"sinks": 2},
    {"scale": 0.7, "softcap": 1.5},
    {"sinks": 1, "key_begin": torch.tensor([0, 4], dtype=torch.int32)},
]


class OperatorTest(unittest.TestCase):
    def test_gradcheck_in_double(self):
        query, key, value, windows = inputs(torch.float64)
        for options in OPTIONS:
            with self.subTest(options=options):
                torch.autograd.gradcheck(
                    lambda q, k, v: torch.ops.aah.attention(q, k, v, windows, **options)[0],
                    (query, key, value),
                )

    def test_opcheck(self):
        for dtype in (torch.float32, torch.float64):
            query, key, value, windows = inputs(dtype)
            for options in OPTIONS:
                options = dict(options, statistics=True)
                with self.subTest(dtype=dtype, options=options):
                    torch.library.opcheck(
                        torch.ops.aah.attention, (query, key, value, windows), options
                    )

    def test_opcheck_of_rotary(self):
        x = torch.randn(2, 5, 3, 8, requires_grad=True)
        table = torch.randn(2, 6, 4)
        torch.library.opcheck(torch.ops.aah.rotary, (x, table))
        torch.library.opcheck(torch.ops.aah.rotary, (x, table), {"inverse": True})

    def test_fake_tensors_have_the_real_layout(self):
        real = torch.ops.aah.attention(*inputs(torch.float32))
        with FakeTensorMode():
            fake = torch.ops.aah.attention(*inputs(torch.float32))
        for ours, theirs in zip(fake, real):
            self.assertEqual(ours.shape, theirs.shape)
            self.assertEqual(ours.stride(), theirs.stride())
            self.assertEqual(ours.dtype, theirs.dtype)

    def test_equals_masked_softmax(self):
        query, key, value, windows = inputs(torch.float32, tokens=70)
        out = torch.ops.aah.attention(query, key, value, windows)[0]
        i = torch.arange(70)[:, None]
        j = torch.arange(70)[None, :]
        visible = (j <= i) & (i - windows[:, None, None] < j)
        expected = torch.nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=visible[None], enable_gqa=True
        )
        torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)

    def test_wrong_arguments_are_value_errors(self):
        query, key, value, windows = inputs(torch.float32)
        with self.assertRaisesRegex(ValueError, "windows must be an int32 vector"):
            torch.ops.aah.attention(query, key, value, windows.long())
        with self.assertRaisesRegex(ValueError, "window"):
            torch.ops.aah.attention(query, key, value, windows * 0)
        with self.assertRaisesRegex(ValueError, "type of query"):
            torch.ops.aah.attention(query, key.double(), value, windows)

    def test_the_gradient_has_none(self):
        query, key, value, windows = inputs(torch.float64)
        out = torch.ops.aah.attention(query, key, value, windows)[0]
        (grad_query,) = torch.autograd.grad(out.sum(), query, create_graph=True)
        with self.assertRaisesRegex(RuntimeError, "not implemented"):
            grad_query.sum().backward()


if __name__ == "__main__":
    torch.ops.load_library(sys.argv.pop(1))
    unittest.main()
