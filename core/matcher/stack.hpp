#pragma once

#include <cstdint>
#include <vector>

#include "regular/expr.hpp"

namespace grammask {

// Stacks of frames that share their lower parts (a graph-structured stack: Tomita 1985; Scott & Johnstone 2010).
//
// A node is a frame that was called at one position; each of its edges says where to go on in which frame below when it
// returns. Several edges mean that several callers wait for the same result, so that ambiguity and left recursion cost
// polynomially. Nodes are only appended to, and truncated in reverse: rolling back restores sizes.
class Stack {
 public:
  static constexpr uint32_t kBottom = 0;
  static constexpr uint32_t kNone = 0xffffffffu;
  struct Edge {
    ExprId rest;      // where the frame below goes on
    uint32_t parent;  // that frame's node
    uint32_t next;    // further edge of the same node, kNone at the end
  };
  struct Node {
    uint32_t edge = kNone;
    ExprId key = 0;      // the letter, if the frame is a captured key
    uint32_t start = 0;  // where its text starts
    bool checked = false;  // the key may have to be refused once complete
    bool vague = false;    // an earlier key of the same frame is unknown: nothing is known once this one is complete
  };
  struct Mark {
    uint32_t nodes, edges;
  };

  Stack() { nodes_.push_back({}); }
  uint32_t push(ExprId rest, uint32_t parent, ExprId key = 0, uint32_t start = 0, bool checked = false,
                bool vague = false) {
    edges_.push_back({rest, parent, kNone});
    nodes_.push_back({static_cast<uint32_t>(edges_.size() - 1), key, start, checked || vague, vague});
    return static_cast<uint32_t>(nodes_.size() - 1);
  }
  // Another caller of a node made at the current position. False if it was known.
  bool add_edge(uint32_t node, ExprId rest, uint32_t parent) {
    for (uint32_t e = nodes_[node].edge; e != kNone; e = edges_[e].next) {
      if (edges_[e].rest == rest && edges_[e].parent == parent) return false;
    }
    edges_.push_back({rest, parent, nodes_[node].edge});
    nodes_[node].edge = static_cast<uint32_t>(edges_.size() - 1);
    return true;
  }
  const Node& node(uint32_t n) const { return nodes_[n]; }
  const Edge& edge(uint32_t e) const { return edges_[e]; }
  Mark mark() const { return {static_cast<uint32_t>(nodes_.size()), static_cast<uint32_t>(edges_.size())}; }
  void truncate(Mark m) {
    nodes_.resize(m.nodes);
    edges_.resize(m.edges);
  }
  size_t memory_bytes() const { return nodes_.capacity() * sizeof(Node) + edges_.capacity() * sizeof(Edge); }

 private:
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
};

}  // namespace grammask
