#pragma once

#include "zoo/graph_builder.h"
#include "zoo/zoo.h"

// Builds the models of the zoo: one function per architecture. Options must be in the model's range; zoo.cc checks them
// and fills in the defaults.
namespace heddle::zoo {

void resnet18(GraphBuilder& g, const Options& options);
void resnet50(GraphBuilder& g, const Options& options);
void vgg16(GraphBuilder& g, const Options& options);
void vgg19(GraphBuilder& g, const Options& options);
void repvgg_a0(GraphBuilder& g, const Options& options);
void repvgg_b0(GraphBuilder& g, const Options& options);
void mobilenet_v2(GraphBuilder& g, const Options& options);

void vit_b16(GraphBuilder& g, const Options& options);
void bert_base(GraphBuilder& g, const Options& options);
void transformer(GraphBuilder& g, const Options& options);
void asr(GraphBuilder& g, const Options& options);

void gpt2(GraphBuilder& g, const Options& options);
void llama(GraphBuilder& g, const Options& options);
void gpt2_step(GraphBuilder& g, const Options& options);
void llama_step(GraphBuilder& g, const Options& options);
void t5_small(GraphBuilder& g, const Options& options);

void whisper_encoder(GraphBuilder& g, const Options& options);
void deberta(GraphBuilder& g, const Options& options);

void swin_t(GraphBuilder& g, const Options& options);
void convnext_t(GraphBuilder& g, const Options& options);

void crnn(GraphBuilder& g, const Options& options);
void dien(GraphBuilder& g, const Options& options);

void sd_unet(GraphBuilder& g, const Options& options);
void sdxl_unet(GraphBuilder& g, const Options& options);
void sd_text(GraphBuilder& g, const Options& options);
void sdxl_text_2(GraphBuilder& g, const Options& options);
void sd_vae_decoder(GraphBuilder& g, const Options& options);

}  // namespace heddle::zoo
