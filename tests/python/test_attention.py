# SPDX-License-Identifier: MIT
"""What ATTENTION.md says about models: which fields keep documents apart, and what happens without them. The code of
transformers that calls FlashAttention runs with a kernel for the CPU in place of FlashAttention's own. The rows are of
many short documents, of one token, too. test_readme.py runs the page's program."""
import contextlib
import functools
import itertools
import os
import random
import subprocess
import unittest
import unittest.mock

import tokmap
from support import TOKMAP, importable, needs, new_folder

SEQ, ROWS = 96, 3
FIELDS = "inputs position_ids document_ids cu_seqlens loss_mask"

if importable("torch") is None:
    import torch
    from torch.nn.functional import scaled_dot_product_attention


def flash(q, k, v, causal=False, softmax_scale=None, **others):
    """FlashAttention's function of whole rows: [rows, tokens, heads, size]."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return scaled_dot_product_attention(q, k, v, is_causal=causal, scale=softmax_scale).transpose(1, 2)


def flash_varlen(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, causal=False, softmax_scale=None,
                 **others):
    """FlashAttention's function of documents: [tokens, heads, size]. It reads no more of one than max_seqlen_q."""
    lengths = cu_seqlens_q.diff().tolist()
    assert max(lengths) <= max_seqlen_q == max_seqlen_k and sum(lengths) == len(q) and cu_seqlens_q.dtype == torch.int32
    documents = zip(*(x.split(lengths) for x in (q, k, v)))
    return torch.cat([flash(*(x[None] for x in each), causal, softmax_scale)[0] for each in documents])


def rows(batch):
    """The position of each document in the batch, as a tensor of row * SEQ + its number in the row."""
    return batch.document_ids + SEQ * torch.arange(batch.count)[:, None]


def leak(batch, logits):
    """The largest change of a logit when the tokens of another document change; logits takes and returns rows."""
    numbers, most = rows(batch), 0.0
    with torch.no_grad():
        before = logits(batch.inputs)
        for number in numbers.unique():
            changed = torch.where(numbers == number, (batch.inputs + 1) % 257, batch.inputs)
            difference = (logits(changed) - before).abs().amax(-1)
            assert difference[numbers == number].max() > 1e-4, "the change of a document's tokens changes its logits"
            most = max(most, difference[numbers != number].max().item())
    return most


def difference_alone(batch, logits, alone):
    """The largest difference between the logits of a document in the batch and those of the document alone."""
    with torch.no_grad():
        numbers, together, most = rows(batch), logits(batch.inputs), 0.0
        for number in numbers.unique():
            found = alone(batch.inputs[numbers == number][None])[0]
            most = max(most, (together[numbers == number] - found).abs().max().item())
    return most


@functools.lru_cache
def llama(attention):
    """A small model with the same weights for any attention."""
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(vocab_size=257, hidden_size=32, intermediate_size=32, num_hidden_layers=2,
                                        num_attention_heads=2, attn_implementation=attention))


@needs("torch")
class Attention(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        name, chosen = os.path.join(new_folder(), "short"), random.Random(1)
        tokmap.pack(["x" * length for length in chosen.choices([0, 1, 2, 20, 50, 130], k=200)], name)
        plan = name + ".plan"
        subprocess.run([TOKMAP, "plan", "-q", "--seq-len", str(SEQ), "-o", plan, name], check=True)
        cls.batches = {}
        for kind, source in ("windows", name), ("packed rows", {"data": name, "plan": plan}):
            run = tokmap.Run(sources={"short": source}, seq_len=SEQ, batch=ROWS, seed=5)
            cls.batches[kind] = max(itertools.islice(run.loader(fields=FIELDS, dtype=torch.int64), 20),
                                    key=lambda b: b.documents)

    def test_the_fields_agree(self):
        """A document begins where each of the fields says so."""
        for kind, b in self.batches.items():
            with self.subTest(kind):
                starts = (b.position_ids == 0).flatten().nonzero().flatten()
                self.assertGreater(len(starts), 3 * ROWS)
                self.assertEqual(starts.tolist(), b.cu_seqlens[:b.documents].tolist())
                numbers = rows(b).flatten()
                self.assertEqual(starts.tolist(), [0, *((numbers.diff() != 0).nonzero().flatten() + 1).tolist()])
                self.assertEqual(b.cu_seqlens.diff().max(), b.max_seqlen)

    @needs("transformers")
    def test_transformers(self):
        from torch.nn.attention.flex_attention import flex_attention
        from transformers.integrations import flex_attention as module
        not_compiled = unittest.mock.patch.object(
            module, "compile_friendly_flex_attention", lambda *given, training, **named: flex_attention(*given, **named),
            create=True)  # a version without this name compiles, which takes two minutes
        not_compiled.start()
        self.addCleanup(not_compiled.stop)
        for attention in "eager", "sdpa", "flex_attention":
            model = llama(attention)
            for kind, b in self.batches.items():
                for leaks, given in ((False, {"position_ids": b.position_ids}),
                                     (True, {}),
                                     (True, {"position_ids": b.position_ids, "use_cache": True}),
                                     (True, {"position_ids": b.position_ids, "attention_mask": torch.ones_like(b.inputs)}),
                                     (True, self.lengths(b))):
                    with self.subTest(f"{attention}, {kind}, {', '.join(given)}"):
                        self.judge(leaks, b, lambda ids: model(ids, **{"use_cache": False, **given}).logits)

    @needs("transformers")
    def test_flash_attention_of_transformers(self):
        """The code of transformers around FlashAttention decides between documents and whole rows."""
        with self.flash_attention() as name:
            model = llama(name)
            for kind, b in self.batches.items():
                flat = {"position_ids": b.position_ids.view(1, -1)}
                lengths = self.lengths(b)
                for leaks, shape, given in (
                        (False, (1, -1), flat), (False, (1, -1), lengths), (False, (1, -1), {**flat, **lengths}),
                        (False, (1, -1), {**lengths, "attention_mask": torch.ones(1, b.inputs.numel())}),
                        (False, (1, -1), {**lengths, "use_cache": True}),
                        (False, (ROWS, -1), {"position_ids": b.position_ids, **lengths}),
                        (True, (ROWS, -1), {"position_ids": b.position_ids}), (True, (1, -1), {}),
                        (True, (1, -1), {name: value for name, value in lengths.items() if name != "max_length_k"})):
                    with self.subTest(f"{kind}, rows {shape}, {', '.join(given)}"):
                        self.judge(leaks, b, lambda ids: model(
                            ids.view(shape), **{"use_cache": False, **given}).logits.view(ROWS, SEQ, -1))

    @needs("torchtitan.models.common.attention")
    def test_torchtitan(self):
        from torchtitan.models.common import attention
        row, q, k = torch.meshgrid(torch.arange(ROWS), torch.arange(SEQ), torch.arange(SEQ), indexing="ij")
        for b in self.batches.values():
            same = attention.get_document_mask_mod(b.position_ids)(row, 0, q, k)
            self.assertTrue(torch.equal(same, b.document_ids[:, :, None] == b.document_ids[:, None, :]))
            lengths = attention.create_varlen_metadata_for_document(b.position_ids)
            self.assertEqual((lengths.cu_seq_q.tolist(), lengths.max_q), (self.ends(b).tolist(), b.max_seqlen))

    @needs("olmo_core.data.utils")
    def test_olmo_core(self):
        from olmo_core.data.utils import get_cumulative_document_lengths
        for b in self.batches.values():
            lengths = torch.nn.functional.one_hot(b.document_ids).sum(1)
            self.assertEqual(get_cumulative_document_lengths(lengths).tolist(), self.ends(b).tolist())
            self.assertEqual(lengths.max(), b.max_seqlen)

    @needs("megatron.bridge.training.utils.packed_seq_utils")
    def test_megatron_bridge(self):
        from megatron.bridge.training.utils.packed_seq_utils import get_packed_seq_params
        for b in self.batches.values():
            ends = self.ends(b)
            given = {"cu_seqlens": ends[None], "max_seqlen": torch.tensor([b.max_seqlen])}
            found = get_packed_seq_params({**given, "cu_seqlens_argmin": torch.tensor(len(ends))})
            self.assertEqual((found.cu_seqlens_q.tolist(), int(found.max_seqlen_kv)), (ends.tolist(), b.max_seqlen))
            self.assertEqual(len(get_packed_seq_params(given).cu_seqlens_q), 0)

    def ends(self, b):
        return b.cu_seqlens[:b.documents + 1]

    @contextlib.contextmanager
    def flash_attention(self):
        """The name of an attention that is transformers' FlashAttention with the kernels above."""
        try:
            from transformers import AttentionInterface, AttentionMaskInterface, modeling_flash_attention_utils as utils
            from transformers.integrations.flash_attention import flash_attention_forward
            from transformers.masking_utils import flash_attention_mask
            kernels = unittest.mock.patch.object(utils, "_lazy_imports", lambda *_, **__: (flash, flash_varlen, None, None, None))
            unknown = unittest.mock.patch.object(utils, "_loaded_implementation", None)
        except (ImportError, AttributeError) as problem:
            self.skipTest(f"this version of transformers calls FlashAttention in another way: {problem}")
        AttentionInterface.register("kernels_for_a_cpu", flash_attention_forward)
        AttentionMaskInterface.register("kernels_for_a_cpu", flash_attention_mask)
        with kernels, unknown:
            yield "kernels_for_a_cpu"

    def judge(self, leaks, batch, logits):
        def alone(ids):
            return llama("eager")(ids, use_cache=False).logits

        if leaks:
            self.assertGreater(leak(batch, logits), 1e-3)
            self.assertGreater(difference_alone(batch, logits, alone), 1e-3)
        else:
            self.assertEqual(leak(batch, logits), 0)
            self.assertLess(difference_alone(batch, logits, alone), 1e-5)

    def lengths(self, b):
        return {"cu_seq_lens_q": b.cu_seqlens, "cu_seq_lens_k": b.cu_seqlens, "max_length_q": b.max_seqlen,
                "max_length_k": b.max_seqlen}
