// Profiles to test the page with: `node synthetic.mjs training` is like a training step of a ResNet, `node synthetic.mjs random
// NODES SLICES SEED` is any tree of that size, `hostile` has names that attack a page, `smallest` one node, `deep DEPTH` one long chain. JSON on stdout.

import { pathToFileURL } from "node:url";

/** Random numbers in [0, 1) of a seed. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Makes a profile's columns, one node at a time. */
export class Builder {
  constructor(title, metrics) {
    this.strings = [];
    this.numbers = new Map();
    this.text("");
    this.frames = { kind: [], name: [], file: [], line: [] };
    this.frameNumbers = new Map();
    this.nodes = { parent: [], frame: [], values: Object.fromEntries(metrics.map(({ name }) => [name, []])) };
    this.children = [];
    this.profile = { format: "heddle-profile", version: 1, title, facts: [], metrics };
    this.node(-1, "root", "");
  }

  text(value) {
    if (!this.numbers.has(value)) {
      this.numbers.set(value, this.strings.length);
      this.strings.push(value);
    }
    return this.numbers.get(value);
  }

  /** The child of `parent` of this frame, made where there is none. */
  node(parent, kind, name, file = "", line = 0, values = {}) {
    const key = `${kind}\0${name}\0${file}\0${line}`;
    let frame = this.frameNumbers.get(key);
    if (frame === undefined) {
      frame = this.frames.kind.length;
      this.frameNumbers.set(key, frame);
      this.frames.kind.push(kind);
      this.frames.name.push(this.text(name));
      this.frames.file.push(this.text(file));
      this.frames.line.push(line);
    }
    let node = parent < 0 ? undefined : this.children[parent].get(frame);
    if (node === undefined) {
      node = this.nodes.parent.length;
      this.nodes.parent.push(parent);
      this.nodes.frame.push(frame);
      for (const column of Object.values(this.nodes.values)) column.push(0);
      this.children.push(new Map());
      if (parent >= 0) this.children[parent].set(frame, node);
    }
    for (const [metric, value] of Object.entries(values)) this.nodes.values[metric][node] += value;
    return node;
  }

  finish(more = {}) {
    return { ...this.profile, strings: this.strings, frames: this.frames, nodes: this.nodes, ...more };
  }
}

const TRAIN = `import torch
from torchvision.models import resnet50
from loader import batches

device = torch.device("cuda")
model = resnet50().to(device)  # parameters go to the GPU once
model.train()
criterion = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def step(images, labels):
    images = images.to(device)
    labels = labels.to(device)
    output = model(images)
    loss = criterion(output, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


for images, labels in batches("train", size=64):
    print(step(images, labels))
`;

const RESNET = `class Bottleneck(nn.Module):
    def forward(self, x):
        identity = x

        out = self.conv1(x)
        out = self.bn1(out)
        out = self.relu(out)

        out = self.conv2(out)
        out = self.bn2(out)
        out = self.relu(out)

        out = self.conv3(out)
        out = self.bn3(out)

        if self.downsample is not None:
            identity = self.downsample(x)

        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def _forward_impl(self, x):
        x = self.conv1(x)
        x = self.bn1(x)
        x = self.relu(x)
        x = self.maxpool(x)

        x = self.layer1(x)
        x = self.layer2(x)
        x = self.layer3(x)
        x = self.layer4(x)

        x = self.avgpool(x)
        x = torch.flatten(x, 1)
        return self.fc(x)
`;

const METRICS = [
  { name: "GKER", unit: "ns", title: "GPU kernels" }, { name: "GXCOPY", unit: "ns", title: "Copies" },
  { name: "BYTES", unit: "bytes", title: "Bytes copied" }, { name: "CPU", unit: "ns", title: "CPU time" },
  { name: "LAUNCHES", unit: "", title: "Launches" },
];

const RESNET_FILE = "/venv/torchvision/models/resnet.py";
const PEAK = 800e12;
const BANDWIDTH = 4.8e12;

/** The model of a training script, its launches in the order of the forward pass. */
class TrainingModel {
  constructor(builder, next, slowdown) {
    Object.assign(this, { builder, next, slowdown, launches: [] });
    this.roofline = { node: [], floor_ns: [], bytes: [], flops: [], bound: [] };
  }

  line(parent, name, file, line) {
    return this.builder.node(parent, "python", name, file, line, { CPU: 20000 + Math.floor(this.next() * 30000) });
  }

  /** An operator that runs forward and backward, each as one kernel. */
  launch(parent, { op, kernel, time, bytes, flops }) {
    const { builder: b, roofline } = this;
    const operator = b.node(parent, "operator", op, "", 0, { CPU: 9000 + Math.floor(this.next() * 9000) });
    const pair = [["<forward>", 1], ["<backward>", 2.05]].map(([phase, factor]) => {
      const node = b.node(b.node(operator, "phase", phase), "kernel", factor === 1 ? kernel : kernel.replace("fprop", "dgrad").replace("_fw_", "_bw_"));
      const floor = Math.max(bytes / BANDWIDTH, flops / PEAK) * 1e9 * factor;
      roofline.node.push(node);
      roofline.floor_ns.push(Math.floor(3 * floor));
      roofline.bytes.push(Math.floor(3 * bytes * factor));
      roofline.flops.push(Math.floor(3 * flops * factor));
      roofline.bound.push(floor < 2500 ? "latency" : bytes / BANDWIDTH > flops / PEAK ? "memory" : "compute");
      return { node, time: time * factor };
    });
    this.launches.push(pair);
  }

  conv(parent, name, line, [rows, inner, outer]) {
    const module = this.builder.node(this.line(parent, "forward", RESNET_FILE, line), "module", name);
    const flops = 2 * rows * inner * outer;
    const bytes = 2 * (rows * (outer + inner / (inner > 1000 ? 9 : 1)) + inner * outer);
    this.launch(module, { op: "aten::conv2d", kernel: `sm90_xmma_fprop_implicit_gemm_f16f16_${outer}x64x32_nhwc`, bytes, flops,
                          time: 4000 + Math.max(flops / (0.52 * PEAK), bytes / (0.6 * BANDWIDTH)) * 1e9 });
  }

  norm(parent, name, line, [rows, channels]) {
    const module = this.builder.node(this.line(parent, "forward", RESNET_FILE, line), "module", name);
    const bytes = 6 * rows * channels;
    this.launch(module, { op: "aten::batch_norm", kernel: "cudnn::bn_fw_tr_1C11_kernel_NCHW", bytes, flops: 8 * rows * channels,
                          time: this.slowdown * (3500 + (bytes / (0.44 * BANDWIDTH)) * 1e9) });
  }

  relu(parent, line, [rows, channels]) {
    const bytes = 4 * rows * channels;
    this.launch(this.line(parent, "forward", RESNET_FILE, line), { op: "aten::relu_", kernel: "vectorized_elementwise_kernel<4, relu>", bytes,
                                                                   flops: rows * channels, time: 2400 + (bytes / (0.7 * BANDWIDTH)) * 1e9 });
  }

  block(parent, name, rows, [inner, width]) {
    this.conv(parent, `${name}.conv1`, 5, [rows, inner, width]);
    this.norm(parent, `${name}.bn1`, 6, [rows, width]);
    this.relu(parent, 7, [rows, width]);
    this.conv(parent, `${name}.conv2`, 9, [rows, 9 * width, width]);
    this.norm(parent, `${name}.bn2`, 10, [rows, width]);
    this.relu(parent, 11, [rows, width]);
    this.conv(parent, `${name}.conv3`, 13, [rows, width, 4 * width]);
    this.norm(parent, `${name}.bn3`, 14, [rows, 4 * width]);
    this.relu(parent, 20, [rows, 4 * width]);
  }

  build(model) {
    const part = (line) => this.line(model, "_forward_impl", RESNET_FILE, line);
    this.conv(part(25), "conv1", 25, [64 * 112 * 112, 147, 64]);
    this.norm(part(26), "bn1", 26, [64 * 112 * 112, 64]);
    this.relu(part(27), 27, [64 * 112 * 112, 64]);
    [[3, 56, 64], [4, 28, 128], [6, 14, 256], [3, 7, 512]].forEach(([blocks, size, width], l) => {
      const layer = this.builder.node(part(30 + l), "module", `layer${l + 1}`);
      for (let i = 0; i < blocks; i++) {
        const name = `layer${l + 1}.${i}`;
        this.block(this.builder.node(layer, "module", name), name, 64 * size * size, [width * (i ? 4 : 2), width]);
      }
    });
  }
}

function trainingAdvice(copy, chain, sync) {
  return [
    { rule: "pageable_copy", node: copy, evidence: "3 copies of 38.5 MB ran at 8.8 GB/s from pageable memory while the host waited; pinned memory gives 52 GB/s.",
      gain_ns: 10860000, share: 0.176, confidence: "measured", remedy: "DataLoader(..., pin_memory=True) and images.to(device, non_blocking=True)" },
    { rule: "unfused_chain", node: chain, evidence: "batch_norm, relu_ and add_ each read and write the whole activation: 3 kernels that are bound by memory, in a row, 16 times.",
      gain_ns: 2950000, share: 0.048, confidence: "bound", remedy: 'torch.compile(model, backend="heddle")' },
    { rule: "sync_in_the_loop", node: sync, evidence: "loss.item() waits for the device in every step; the device is idle for 0.7 ms afterwards.",
      gain_ns: 2100000, share: 0.034, confidence: "measured", remedy: "Keep the loss on the device and print it every 100 steps." },
  ];
}

/** Three steps of a ResNet-50 as a script of PyTorch runs them. @param {number} slowdown  of what normalises */
export function training(seed = 1, slowdown = 1) {
  const next = random(seed);
  const b = new Builder("train.py: resnet50, 3 steps, batch of 64", METRICS);
  const slices = { track: [], start: [], duration: [], node: [] };
  let clock = 0;
  const run = (track, node, time, values = {}) => {
    const duration = Math.floor(time);
    const metric = track === 0 ? "GKER" : "GXCOPY";
    for (const [name, value] of Object.entries({ [metric]: duration, LAUNCHES: 1, ...values })) b.nodes.values[name][node] += value;
    for (const [column, value] of Object.entries({ track, start: clock, duration, node })) slices[column].push(value);
    clock += duration + 900 + Math.floor(next() * 2600);
  };
  const script = "/home/ada/train.py";
  const main = (line) => b.node(0, "python", "<module>", script, line, { CPU: 300000 });
  const at = (line) => b.node(main(24), "python", "step", script, line, { CPU: 30000 + Math.floor(next() * 90000) });
  const moved = b.node(b.node(b.node(main(6), "python", "to", "/venv/torch/nn/modules/module.py", 1340), "operator", "aten::to"), "copy", "host to device");
  const images = b.node(b.node(at(13), "operator", "aten::to"), "copy", "host to device, pageable");
  const model = new TrainingModel(b, next, slowdown);
  model.build(b.node(at(15), "module", "model"));
  const update = b.node(b.node(b.node(at(19), "python", "step", "/venv/torch/optim/sgd.py", 131), "operator", "aten::_foreach_add_"), "kernel", "multi_tensor_apply_kernel<sgd>");
  const sync = b.node(b.node(at(20), "operator", "aten::item"), "sync", "stream", "", 0, { CPU: 6100000 });
  const jitter = (time) => time * (0.96 + 0.08 * next());
  run(1, moved, 9800000, { BYTES: 102000000, LAUNCHES: 320 });
  for (let i = 0; i < 3; i++) {
    run(1, images, jitter(4366000), { BYTES: 38535168 });
    for (const [forward] of model.launches) run(0, forward.node, jitter(forward.time));
    for (const [, backward] of model.launches.slice().reverse()) run(0, backward.node, jitter(backward.time));
    run(0, update, jitter(480000), { LAUNCHES: 4 });
    clock += 700000;
  }
  b.profile.facts = [["script", "train.py"], ["device", "example GPU, 4.8 TB/s"], ["steps", "3 of 20"], ["time of a step", `${((clock - 9800000) / 3e6).toFixed(1)} ms`],
                     ["kernels busy", "71%"], ["own overhead", "1.9%"], ["records dropped", "0"]];
  const chain = model.roofline.node[Math.floor(model.roofline.node.length / 8) * 2 + 2];
  return b.finish({
    roofline: model.roofline, advice: trainingAdvice(images, chain, b.nodes.parent[sync]),
    device: { name: "example GPU", bandwidth: BANDWIDTH, flops: { f16: PEAK, tf32: PEAK / 2, f32: PEAK / 12 } },
    timeline: { tracks: [{ process: "rank 0", name: "GPU 0, stream 7" }, { process: "rank 0", name: "GPU 0, copies" }], ...slices },
    sources: [{ file: b.text(script), first_line: 1, text: TRAIN }, { file: b.text(RESNET_FILE), first_line: 1, text: RESNET }],
  });
}

/** Any tree of `count` nodes, with recursions, and `slices` of its nodes. */
export function randomProfile(count, slices, seed) {
  const next = random(seed);
  const b = new Builder(`random ${count}`, METRICS.slice(0, 2));
  const kinds = ["python", "module", "operator", "native", "kernel"];
  for (let tries = 0; b.nodes.parent.length < count && tries < 20 * count; tries++) {
    const n = b.nodes.parent.length;
    const parent = n < 3 || next() < 0.6 ? Math.max(0, n - 1 - Math.floor(next() * Math.min(n, 20))) : Math.floor(next() * n);
    const kind = kinds[Math.floor(next() * kinds.length)];
    const name = `f${Math.floor(next() ** 2 * Math.max(6, count / 40))}`;
    b.node(parent, kind, name, next() < 0.4 ? `file${Math.floor(next() * 9)}.py` : "", Math.floor(next() * 3),
           { GKER: Math.floor(next() ** 4 * 1e6), GXCOPY: next() < 0.2 ? Math.floor(next() * 1e5) : 0 });
  }
  const timeline = { tracks: [{ process: "p", name: "a" }, { process: "p", name: "b" }], track: [], start: [], duration: [], node: [] };
  let clock = 0;
  for (let i = 0; i < slices; i++) {
    clock += Math.floor(next() * 3000);
    timeline.track.push(i & 1);
    timeline.start.push(clock);
    timeline.duration.push(Math.floor(next() * 4000));
    timeline.node.push(Math.floor(next() * b.nodes.parent.length));
  }
  return b.finish({ timeline });
}

/** The least that is a profile: a root without time. */
export function smallest() {
  return new Builder("", [{ name: "CPU", unit: "ns" }]).finish();
}

/** Calls `depth` deep, each to itself. */
export function deep(depth) {
  const b = new Builder("deep", METRICS.slice(0, 1));
  let node = 0;
  for (let i = 0; i < depth; i++) node = b.node(node, "python", `f${i % 3}`, "a.py", i % 3, { GKER: 1 });
  return b.finish();
}

export const ATTACKS = ["</script><script>window.attacked=1</script>", "<img src=x onerror=window.attacked=1>", "<!--<script>", "'\"`${window.attacked=1}",
                        "a\nb\u0000c\u001b[31m\u202eevil\u2028", "__proto__", "constructor", "\ud800", "{{script}}{{style}}"];

/** Names that try to leave the places where they are shown. */
export function hostile() {
  const b = new Builder(ATTACKS[0], [{ name: "GKER", unit: "ns", title: ATTACKS[1] }]);
  let parent = 0;
  ATTACKS.forEach((name, i) => {
    parent = b.node(i % 3 ? parent : 0, i === 1 ? name : "kernel", name, name, 1, { GKER: 1000 + i });
  });
  return b.finish({
    facts: ATTACKS.map((name) => [name, name]),
    sources: ATTACKS.map((name) => ({ file: b.text(name), first_line: 1, text: `${name}\n${name}` })),
    advice: [{ rule: ATTACKS[0], node: 1, evidence: ATTACKS[1], gain_ns: 10, share: 0.1, confidence: ATTACKS[3], remedy: ATTACKS[2] }],
    timeline: { tracks: [{ process: ATTACKS[0], name: ATTACKS[1] }], track: [0], start: [0], duration: [100], node: [1] },
    device: { name: ATTACKS[1], bandwidth: 1e12, flops: { [ATTACKS[0]]: 1e13 } },
    roofline: { node: [1], floor_ns: [100], bytes: [1000], flops: [1000], bound: [ATTACKS[0]] },
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const [, , kind, ...numbers] = process.argv;
  const makers = { training, random: randomProfile, hostile, smallest, deep };
  process.stdout.write(JSON.stringify(makers[kind](...numbers.map(Number))));
}
