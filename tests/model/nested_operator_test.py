"""torch.ops.aah.nested_attention from Python: gradients, fake tensors, live candidates, errors.

Usage: nested_operator_test.py LIBAAH_OPS
"""

import sys
import unittest

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

WINDOWS = [1, 3, 5, 100]


def inputs(dtype, batch=2, heads=4, kv_heads=2, tokens=9, head_dim=8):
    torch.manual_seed(0)

    def heads_inner(count):
        shape = (batch, tokens, count, head_dim)
        return torch.randn(shape, dtype=dtype).transpose(1, 2).requires_grad_()

    logits = torch.randn(heads, len(WINDOWS), dtype=dtype).requires_grad_()
    return heads_inner(heads), heads_inner(kv_heads), heads_inner(kv_heads), logits


def nested(query, key, value, logits, **options):
    selection = logits.softmax(-1)
    return torch.ops.aah.nested_attention(query, key, value, selection, WINDOWS, **options)


def mixture(query, key, value, logits, **options):
    """The definition, by the operator that attends within one window."""
    heads = query.shape[1]
    selection = logits.softmax(-1)
    return sum(
        selection[None, :, n, None, None]
        * torch.ops.aah.attention(
            query, key, value, torch.full((heads,), window, dtype=torch.int32), **options
        )[0]
        for n, window in enumerate(WINDOWS)
    )


OPTIONS = [
    {},
    {"sinks": 2},
    {"scale": 0.7, "softcap": 1.5},
    {"sinks": 1, "key_begin": torch.tensor([0, 4], dtype=torch.int32)},
    {"key_length": torch.tensor([9, 6], dtype=torch.int32)},
]
# Candidates 0 and 2 of head 0, and so on.
LIVE = [1, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 1, 1, 0]


class NestedOperatorTest(unittest.TestCase):
    def test_gradcheck_in_double(self):
        tensors = inputs(torch.float64, tokens=7, head_dim=3)
        for options in [{}, {"sinks": 2}, {"scale": 0.7, "softcap": 1.5}]:
            with self.subTest(options=options):
                torch.autograd.gradcheck(lambda *t: nested(*t, **options)[0], tensors)

    def test_equals_the_mixture_and_its_gradients(self):
        for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-12)):
            for options in OPTIONS:
                with self.subTest(dtype=dtype, options=options):
                    tensors = inputs(dtype)
                    weights = torch.randn_like(tensors[0])
                    ours = nested(*tensors, **options)[0]
                    theirs = mixture(*tensors, **options)
                    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
                    ours = torch.autograd.grad((ours * weights).sum(), tensors)
                    theirs = torch.autograd.grad((theirs * weights).sum(), tensors)
                    for one, other in zip(ours, theirs):
                        torch.testing.assert_close(
                            one, other, rtol=10 * tolerance, atol=10 * tolerance
                        )

    def test_candidates_left_out_equal_a_weight_of_zero(self):
        for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-12)):
            query, key, value, logits = inputs(dtype)
            live = torch.tensor(LIVE).reshape(4, 4)
            selection = (logits.softmax(-1) * live).detach().requires_grad_()
            tensors = (query, key, value, selection)
            everything = torch.ops.aah.nested_attention(*tensors, WINDOWS, [], 1)
            out, candidate_out, log_sum_exp = torch.ops.aah.nested_attention(
                *tensors, WINDOWS, LIVE, 1
            )
            slots = live.flatten().nonzero().flatten()
            self.assertEqual(candidate_out.shape, (2, len(slots), 9, 8))
            close = dict(rtol=tolerance, atol=tolerance)
            torch.testing.assert_close(out, everything[0], **close)
            torch.testing.assert_close(candidate_out, everything[1][:, slots], **close)
            torch.testing.assert_close(log_sum_exp, everything[2][:, slots], **close)
            ours = torch.autograd.grad(out.sum(), tensors)
            theirs = torch.autograd.grad(everything[0].sum(), tensors)
            for one, other in zip(ours[:3], theirs[:3]):
                torch.testing.assert_close(one, other, rtol=10 * tolerance, atol=10 * tolerance)
            torch.testing.assert_close(
                ours[3], theirs[3] * live, rtol=10 * tolerance, atol=10 * tolerance
            )

    def test_opcheck(self):
        for dtype in (torch.float32, torch.float64):
            query, key, value, logits = inputs(dtype)
            selection = logits.softmax(-1).detach().requires_grad_()
            for options in OPTIONS + [{"live": LIVE}]:
                with self.subTest(dtype=dtype, options=options):
                    torch.library.opcheck(
                        torch.ops.aah.nested_attention,
                        (query, key, value, selection, WINDOWS),
                        options,
                    )

    def test_fake_tensors_have_the_real_layout(self):
        for options in ({}, {"live": LIVE}):
            real = nested(*inputs(torch.float32), **options)
            with FakeTensorMode():
                fake = nested(*inputs(torch.float32), **options)
            for ours, theirs in zip(fake, real):
                self.assertEqual(ours.shape, theirs.shape)
                self.assertEqual(ours.stride(), theirs.stride())
                self.assertEqual(ours.dtype, theirs.dtype)

    def test_wrong_arguments_are_value_errors(self):
        query, key, value, logits = inputs(torch.float32)
        op = torch.ops.aah.nested_attention
        selection = logits.softmax(-1)
        with self.assertRaisesRegex(ValueError, "candidates must ascend"):
            op(query, key, value, selection, [1, 3, 3, 100])
        with self.assertRaisesRegex(ValueError, "windows must be numbers of tokens from 1 on"):
            op(query, key, value, selection, [0, 3, 5, 100])
        with self.assertRaisesRegex(ValueError, r"selection must be \[heads, candidates\]"):
            op(query, key, value, selection, [3, 5, 100])
        with self.assertRaisesRegex(ValueError, "selection must be Float"):
            op(query, key, value, selection.double(), WINDOWS)
        with self.assertRaisesRegex(ValueError, "expected a finite weight of 0 or more"):
            op(query, key, value, logits - 10, WINDOWS)
        with self.assertRaisesRegex(ValueError, "live has no candidate for head 3"):
            op(query, key, value, selection, WINDOWS, [1] * 12 + [0] * 4)
        with self.assertRaisesRegex(ValueError, "live has 3 entries"):
            op(query, key, value, selection, WINDOWS, [1, 1, 1])
        for name in ("key_begin", "key_length"):
            with self.assertRaisesRegex(ValueError, name + " must be an int32 vector"):
                op(query, key, value, selection, WINDOWS, **{name: torch.zeros(2)})
        with self.assertRaisesRegex(ValueError, "float32 or float64"):
            half = (tensor.half() for tensor in (query, key, value))
            op(*half, selection.half(), WINDOWS)

    def test_the_gradient_has_none(self):
        tensors = inputs(torch.float64)
        out = nested(*tensors)[0]
        (grad_query,) = torch.autograd.grad(out.sum(), tensors[0], create_graph=True)
        with self.assertRaisesRegex(RuntimeError, "not implemented"):
            grad_query.sum().backward()


if __name__ == "__main__":
    torch.ops.load_library(sys.argv.pop(1))
    unittest.main()
