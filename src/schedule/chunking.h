// Chunking: which elements a (block, lane, round) means. Integer arithmetic shared by host, device and simulator.
//
// A call's data is cut into `blocks` (one per rank, or a single one). A block is cut into pieces of at most `piece`
// elements, dealt to lanes and rounds in turn: piece (lane, round) starts at (round · lanes + lane) · piece.
// Every message is one piece; a piece may be empty, its message is still sent, so message counts depend on the plan
// only.
#pragma once

#include <cstdint>

#include "schedule/step.h"

namespace talaria {

struct Chunking {
  uint64_t block_elements;  // elements of a full block
  uint64_t total_elements;  // elements of all blocks together; the last blocks may be short or empty
  uint64_t input_stride;    // elements from one block to the next in the send buffer (0: the buffer is one block)
  uint64_t output_stride;   // the same for the receive buffer
  uint64_t piece;           // elements per message, at most
  uint32_t lanes;
  uint32_t rounds;
};

struct Piece {
  uint64_t first;  // element offset inside the block
  uint64_t count;
};

TALARIA_HOST_DEVICE inline Piece piece_of(const Chunking& chunking, uint32_t block, uint32_t lane, uint32_t round) {
  const uint64_t begin = static_cast<uint64_t>(block) * chunking.block_elements;
  uint64_t length = chunking.total_elements > begin ? chunking.total_elements - begin : 0;
  if (length > chunking.block_elements) length = chunking.block_elements;
  Piece piece{(static_cast<uint64_t>(round) * chunking.lanes + lane) * chunking.piece, 0};
  if (piece.first < length) piece.count = length - piece.first < chunking.piece ? length - piece.first : chunking.piece;
  return piece;
}

// Element offset of a piece in the send / receive buffer.
TALARIA_HOST_DEVICE inline uint64_t input_offset(const Chunking& chunking, uint32_t block, const Piece& piece) {
  return block * chunking.input_stride + piece.first;
}
TALARIA_HOST_DEVICE inline uint64_t output_offset(const Chunking& chunking, uint32_t block, const Piece& piece) {
  return block * chunking.output_stride + piece.first;
}

}  // namespace talaria
