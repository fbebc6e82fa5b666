"""Recurrent modules of heddle.torch.prepare(), compared with torch.nn in float64, and their kernels on the emulated GPU."""
import copy
import os
import pickle
import sys
import unittest

import numpy as np

try:
    import torch
except ImportError:
    sys.exit("skipped: there is no torch")

from drawing import draw

import heddle
import heddle.tile.language as tl
import heddle.torch
from heddle.torch.recurrent import kernels, modules, operators

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
EMULATED = "emulator" in os.environ.get("HEDDLE_CUDA_DRIVER", "")
# Other tests take sizes that occur here, and find their kernels compiled.
SHAPES = ({"hidden_size": 10}, {"hidden_size": 33, "num_layers": 2, "bidirectional": True, "batch_first": True},
          {"hidden_size": 10, "bias": False})
if DEVICE == "cuda":
    SHAPES += ({"hidden_size": 96, "bias": False, "bidirectional": True},)  # more than the registers of a program hold


def leaves(result):
    y, states = result
    return [y, *(states if isinstance(states, tuple) else (states,))]


def gradients(module, x, states):
    """Outputs, and gradients of a random sum of them."""
    x = x.clone().requires_grad_()
    states = [one.clone().requires_grad_() for one in states]
    given = () if not states else (tuple(states),) if len(states) == 2 else (states[0],)
    results = leaves(module(x, *given))
    random = torch.Generator().manual_seed(1)
    sum((one * torch.randn(one.shape, generator=random, dtype=torch.float64).to(one)).sum() for one in results).backward()
    return results, [one.grad for one in (x, *states, *module.parameters())]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.LSTM(6, 33, bidirectional=True, batch_first=True)
        self.second = torch.nn.GRU(66, 10, batch_first=True)
        self.last = torch.nn.Linear(10, 3)

    def forward(self, x):
        return self.last(self.second(self.first(x.relu())[0])[0]).square().mean()


class Modules(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch.backends.cudnn.allow_tf32 = False

    def compare(self, module, x, states=()):
        wide = copy.deepcopy(module).double()
        ours = heddle.torch.prepare(module)
        self.assertEqual(type(ours).__module__, modules.__name__)
        results, found = gradients(ours, x, states)
        expected, wanted = gradients(wide, x.double(), [one.double() for one in states])
        for one, other in zip([*results, *found], [*expected, *wanted]):
            self.assertEqual(one.shape, other.shape)
            torch.testing.assert_close(one.double(), other, rtol=0, atol=2e-6 * max(1, other.abs().max().item()))

    def test_results_and_gradients(self):
        for kind in (torch.nn.LSTM, torch.nn.GRU):
            for words in SHAPES:
                with self.subTest(kind=kind, **words):
                    self.compare(kind(7, device=DEVICE, **words), torch.randn(19, 11, 7, device=DEVICE))

    def test_states_of_the_caller(self):
        for kind, count in draw(((torch.nn.LSTM, 2), (torch.nn.GRU, 1))):
            for extents in ((5, 3, 7), (5, 7)):
                module = kind(7, 33, num_layers=2, bidirectional=True, device=DEVICE)
                states = [torch.randn(4, *extents[1:-1], 33, device=DEVICE) for _ in range(count)]
                with self.subTest(kind=kind, extents=extents):
                    self.compare(module, torch.randn(*extents, device=DEVICE), states)

    def test_double(self):
        x = torch.randn(5, 3, 7, dtype=torch.float64, device=DEVICE)
        for kind in draw((torch.nn.LSTM, torch.nn.GRU)):
            module = kind(7, 12, device=DEVICE, dtype=torch.float64)
            other, = gradients(module, x, ())[0][:1]
            torch.testing.assert_close(gradients(heddle.torch.prepare(module), x, ())[0][0], other, rtol=0, atol=1e-12)

    def test_modules_keep_what_they_have(self):
        net = Net().to(DEVICE)
        state, parameters, optimizer = net.state_dict(), list(net.parameters()), torch.optim.SGD(net.parameters(), lr=0.1)
        ours = heddle.torch.prepare(net)
        self.assertIs(ours, net)
        self.assertEqual(list(ours.state_dict()), list(state))
        self.assertTrue(all(one is other for one, other in zip(ours.parameters(), parameters)))
        self.assertIn("batch_first=True, bidirectional=True", repr(ours))
        before = copy.deepcopy(ours).state_dict()
        ours(torch.randn(2, 4, 6, device=DEVICE)).backward()
        optimizer.step()
        self.assertFalse(torch.equal(ours.state_dict()["first.weight_hh_l0"], before["first.weight_hh_l0"]))
        Net().load_state_dict(ours.state_dict())
        x = torch.randn(2, 4, 6, device=DEVICE)
        self.assertTrue(torch.equal(pickle.loads(pickle.dumps(ours))(x), ours(x)))

    def test_what_stays(self):
        for module in (torch.nn.LSTM(4, 300), torch.nn.LSTM(4, 8, proj_size=3), torch.nn.RNN(4, 8)):
            self.assertIs(heddle.torch.prepare(module), module)
        first = torch.nn.LSTM(8, 8)
        twice = heddle.torch.prepare(torch.nn.ModuleList([first, first]))
        self.assertIs(twice[0], twice[1])

    def test_what_is_refused(self):
        module = heddle.torch.prepare(torch.nn.GRU(4, 8))
        packed = torch.nn.utils.rnn.pack_padded_sequence(torch.randn(3, 2, 4), [3, 2])
        for arguments, why in (((packed,), "packed sequences"), ((torch.randn(3, 2, 4), torch.randn(1, 3, 8)), r"shape \(1, 3, 8\)")):
            with self.subTest(why), self.assertRaisesRegex(heddle.InputError, why):
                module(*arguments)

    def test_dropout_between_layers(self):
        module = heddle.torch.prepare(torch.nn.LSTM(4, 10, num_layers=2, dropout=0.5, device=DEVICE))
        x = torch.randn(5, 3, 4, device=DEVICE)
        results = []
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            results.append(module(x)[0])
        self.assertTrue(torch.equal(results[0], results[1]) and not torch.equal(results[0], results[2]))
        module.eval()
        self.assertTrue(torch.equal(module(x)[0], module(x)[0]))

    def test_autocast(self):
        for kind in draw((torch.nn.LSTM, torch.nn.GRU)):
            module = kind(6, 20, device=DEVICE)
            wide, ours = copy.deepcopy(module).double(), heddle.torch.prepare(module)
            x = torch.randn(9, 3, 6, device=DEVICE)
            with torch.autocast(DEVICE, torch.bfloat16):
                y = ours(x)[0]
            self.assertEqual(y.dtype, torch.bfloat16)
            y.float().sum().backward()
            expected = wide(x.double())[0]
            expected.sum().backward()
            torch.testing.assert_close(y.double(), expected, rtol=0, atol=0.02)
            for one, other in zip(ours.parameters(), wide.parameters()):
                torch.testing.assert_close(one.grad.double(), other.grad, rtol=0, atol=0.03 * other.grad.abs().max().item())

    def test_compiled_in_one_graph(self):
        net = Net().to(DEVICE)
        wide, ours = copy.deepcopy(net).double(), heddle.torch.prepare(net)
        compiled = torch.compile(ours, backend=heddle.torch.heddle_backend, fullgraph=True, options={"fallback": "error", "execution": "reference"})
        for batch in (2, 5):
            x = torch.randn(batch, 4, 6, device=DEVICE)
            ours.zero_grad()
            wide.zero_grad()
            compiled(x).backward()
            wide(x.double()).backward()
            for one, other in zip(ours.parameters(), wide.parameters()):
                torch.testing.assert_close(one.grad.double(), other.grad, rtol=1e-4, atol=1e-6)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x).double(), wide(x.double()), rtol=1e-5, atol=1e-6)

    def test_operators_follow_the_rules_of_torch(self):
        x, weights, states = torch.randn(3, 2, 1, 40), torch.randn(1, 40, 10), torch.randn(2, 1, 2, 10)
        x, weights, states = (one.to(DEVICE).requires_grad_() for one in (x, weights, states))
        torch.library.opcheck(operators.lstm, (x, weights, states[0], states[1], False, True))
        bias = torch.randn(1, 30, device=DEVICE, requires_grad=True)
        torch.library.opcheck(operators.gru, (x[..., :30], weights[:, :30], bias, states[0], False, True))


@unittest.skipUnless(EMULATED, "there is no GPU or emulator")
class Kernels(unittest.TestCase):
    def run_on_gpu(self, kind, units, directions, dtype):
        """Outputs and gradients of states of a layer, beside PyTorch's in float64."""
        rows, steps, gates = 18, 3, 4 if kind is torch.nn.LSTM else 3
        place = lambda tensor: heddle.tensor(np.ascontiguousarray(tensor.detach().numpy().astype(dtype)), device="cuda:0")  # noqa: E731
        module = kind(5, units, bidirectional=directions == 2).double()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.copy_(torch.tensor(parameter.numpy().astype(dtype)))
        of = lambda name: [getattr(module, name + end) for end in ("_l0", "_l0_reverse")[:directions]]  # noqa: E731
        x, dy = torch.randn(steps, rows, 5, dtype=torch.float64), torch.randn(steps, rows, directions * units, dtype=torch.float64)
        state = torch.zeros(directions, rows, units, dtype=torch.float64, requires_grad=True)
        y = module(x, (state, torch.zeros_like(state)) if gates == 4 else state)[0]
        (y * dy).sum().backward()
        bias = torch.cat(of("bias_ih")) + (torch.cat(of("bias_hh")) if gates == 4 else 0)
        projected = place(torch.nn.functional.linear(x, torch.cat(of("weight_ih")), bias))
        weights, zero, outputs = place(torch.stack(of("weight_hh"))), place(state * 0), place(y * 0)
        blank = lambda width, dtype=dtype: heddle.tensor(np.zeros((steps, rows, directions, width), dtype), device="cuda:0")  # noqa: E731
        hidden, saved, cells, dstate, dx = blank(units), blank(4 * units), blank(units, np.float32), place(state * 0), blank(gates * units)
        last = (steps, rows, rows, 1)
        words = {"DIRECTIONS": directions, "UNITS": units, "ROWS": 16, "PART": 32, "PRECISION": "ieee", "RESIDENT": units <= 64,
                 "WIDE": tl.float32, "num_warps": 8}
        if gates == 4:
            kernels.lstm_kernel[(2, directions)](projected, weights, zero, zero, outputs, hidden, cells, saved, zero, zero, *last, **words)
            zero, other = place(state * 0), place(state * 0)
            kernels.lstm_backward_kernel[(2, directions)](place(dy), zero, zero, weights, cells, saved, dx, dstate, other, *last, **words)
        else:
            kernels.gru_kernel[(2, directions)](projected, weights, place(torch.stack(of("bias_hh"))), zero, outputs, hidden, saved,
                                                place(state * 0), *last, **words)
            kernels.gru_backward_kernel[(2, directions)](place(dy), zero, weights, hidden, saved, dx, blank(gates * units), dstate, *last,
                                                         **words)
        bound = 4e-6 if dtype == np.float32 else 4e-3
        np.testing.assert_allclose(outputs.numpy(), y.detach().numpy(), rtol=0, atol=bound)
        np.testing.assert_allclose(dstate.numpy(), state.grad.numpy(), rtol=0, atol=bound * abs(state.grad).max().item())

    def test_on_an_emulated_gpu(self):
        torch.manual_seed(0)
        cases = ((torch.nn.LSTM, 40, 2, np.float16), (torch.nn.LSTM, 80, 1, np.float32),
                 (torch.nn.GRU, 64, 1, np.float32), (torch.nn.GRU, 72, 2, np.float16))
        for kind, units, directions, dtype in draw(cases):
            with self.subTest(kind=kind, units=units):
                self.run_on_gpu(kind, units, directions, dtype)


if __name__ == "__main__":
    unittest.main()
