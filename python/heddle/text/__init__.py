"""Text from language models and of speech, by models in folders as optimum and onnx-community lay them out.

    from heddle.text import Generator, Transcriber
    for piece in Generator("SmolLM2-135M-Instruct", target="cuda").stream(["Once upon a time"]):
        print(piece.text, end="", flush=True)
    print(Transcriber("whisper-base").transcribe("talk.wav").text)

Needs the packages tokenizers and, for chat templates, jinja2: `pip install 'heddle[text]'`.
"""
from heddle.text.generator import Answer, Generator, Piece, Timing
from heddle.text.graphs import Sampling
from heddle.text.transcriber import Transcriber, Transcript

__all__ = ["Answer", "Generator", "Piece", "Sampling", "Timing", "Transcriber", "Transcript"]
