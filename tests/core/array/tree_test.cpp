// Trees: flattening, rebuilding, mapping, key paths and the errors of mismatched structures.
#include <capibara/tree.h>

#include <gtest/gtest.h>

using capibara::Array;
using capibara::Arrays;
using capibara::TreeDef;
namespace tree = capibara::jax::tree;

enum class Activation { tanh, relu };

struct Layer {
  Array w, b;
  Activation activation = Activation::tanh;
};
CAPIBARA_TREE(Layer, w, b, activation)

namespace model {
struct Network {
  std::vector<Layer> layers;
  std::map<std::string, Array> extra;
  std::optional<Array> scale;
  int depth = 0;
};
CAPIBARA_TREE(Network, layers, extra, scale, depth)

struct Wide {
  Array a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23,
      a24, a25, a26, a27, a28, a29, a30, a31, a32, a33;
};
CAPIBARA_TREE(Wide, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21,
              a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33)
struct Empty {};
CAPIBARA_TREE(Empty)
}  // namespace model

namespace {

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

model::Network example() {
  model::Network network;
  network.layers = {Layer{Array(1.0), Array(2.0)}, Layer{Array(3.0), Array(4.0), Activation::relu}};
  network.extra = {{"b", Array(6.0)}, {"a", Array(5.0)}};
  network.depth = 2;
  return network;
}

std::vector<double> values(const Arrays& arrays) {
  std::vector<double> result;
  for (const Array& array : arrays) result.push_back(array.item<double>());
  return result;
}

TEST(Tree, LeavesComeInFieldOrderAndMapsAreSorted) {
  EXPECT_EQ(values(tree::leaves(example())), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(tree::structure(example()).num_leaves(), 6u);
}

TEST(Tree, UnflattenRebuildsTheSameStruct) {
  model::Network network = example();
  network.scale = Array(7.0);
  auto [leaves, structure] = tree::flatten(network);
  model::Network copy = tree::unflatten<model::Network>(structure, leaves);
  EXPECT_EQ(tree::structure(copy), structure);
  EXPECT_EQ(copy.layers[1].activation, Activation::relu);
  EXPECT_EQ(copy.depth, 2);
  EXPECT_EQ(copy.scale->item<int>(), 7);
  EXPECT_EQ(values(tree::leaves(tree::unflatten(network, leaves))), values(leaves));
}

TEST(Tree, PrintsAsPyTreeDef) {
  auto text = [](const auto& t) { return tree::structure(t).to_string(); };
  Array x(1.0);
  EXPECT_EQ(text(x), "PyTreeDef(*)");
  EXPECT_EQ(text(std::tuple<>()), "PyTreeDef(())");
  EXPECT_EQ(text(std::tuple(x)), "PyTreeDef((*,))");
  EXPECT_EQ(text(std::pair(x, std::vector<Array>{x, x})), "PyTreeDef((*, [*, *]))");
  EXPECT_EQ(text(std::map<std::string, std::tuple<Array, Array>>{{"b", {x, x}}, {"a", {x, x}}}),
            "PyTreeDef({'a': (*, *), 'b': (*, *)})");
  EXPECT_EQ(text(std::map<int, Array>{{1, x}}), "PyTreeDef({1: *})");
  EXPECT_EQ(text(std::optional<Array>()), "PyTreeDef(None)");
  EXPECT_EQ(text(std::tuple(x, 3, std::string("name"), true)), "PyTreeDef((*, 3, 'name', True))");
  EXPECT_EQ(text(Layer{x, x}), "PyTreeDef(CustomNode(Layer[(0,)], [*, *]))");
}

TEST(Tree, StaticValuesArePartOfTheStructure) {
  Array x(1.0);
  EXPECT_EQ(tree::structure(std::tuple(x, 3)), tree::structure(std::tuple(Array(2.0), 3)));
  EXPECT_FALSE(tree::structure(std::tuple(x, 3)) == tree::structure(std::tuple(x, 4)));
  EXPECT_FALSE(tree::structure(std::tuple(x, 3)) == tree::structure(std::tuple(x, 3u)));
  EXPECT_FALSE(tree::structure(std::tuple(x, std::string("a"))) == tree::structure(std::tuple(x, std::string("b"))));
  EXPECT_EQ(std::hash<TreeDef>{}(tree::structure(std::tuple(x, 3))), tree::structure(std::tuple(x, 3)).hash());
  auto one = [](Array v) { return v; };
  EXPECT_EQ(tree::structure(std::tuple(one)), tree::structure(std::tuple(one)));
  EXPECT_EQ(tree::leaves(std::tuple(std::vector<float>{1, 2}, x)).size(), 1u);
}

TEST(Tree, MapWorksLeafByLeafOverSeveralTrees) {
  model::Network network = example();
  model::Network sum =
      tree::map([](Array a, Array b) { return a.item<double>() + 10 * b.item<double>(); }, network, network);
  EXPECT_EQ(values(tree::leaves(sum)), (std::vector<double>{11, 22, 33, 44, 55, 66}));
  EXPECT_EQ(sum.depth, 2);
}

TEST(Tree, PathsReadLikeExpressions) {
  std::vector<std::string> paths;
  model::Network network = example();
  network.scale = Array(0.0);
  for (const auto& [path, leaf] : tree::leaves_with_path(network)) paths.push_back(tree::keystr(path));
  EXPECT_EQ(paths, (std::vector<std::string>{".layers[0].w", ".layers[0].b", ".layers[1].w", ".layers[1].b",
                                             ".extra['a']", ".extra['b']", ".scale"}));
  std::string seen;
  tree::map_with_path(
      [&](const tree::KeyPath& path, Array a) {
        seen += tree::keystr(path);
        return a;
      },
      std::tuple(std::map<int, Array>{{7, Array(1.0)}}));
  EXPECT_EQ(seen, "[0][7]");
}

TEST(Tree, ReduceAndAllFoldTheLeaves) {
  EXPECT_EQ(tree::reduce([](double sum, Array a) { return sum + a.item<double>(); }, example(), 0.0), 21.0);
  EXPECT_TRUE(tree::all(std::tuple(Array(true), Array(1.0))));
  EXPECT_FALSE(tree::all(std::tuple(Array(true), Array(0.0))));
  EXPECT_THROW(tree::reduce([](Array a, Array) { return a; }, std::tuple<>()), capibara::TypeError);
}

TEST(Tree, TransposeTurnsAListOfStructsIntoAStructOfLists) {
  using Pairs = std::vector<std::tuple<Array, Array>>;
  Pairs pairs{{Array(1.0), Array(2.0)}, {Array(3.0), Array(4.0)}, {Array(5.0), Array(6.0)}};
  TreeDef outer = TreeDef::list({TreeDef::leaf(), TreeDef::leaf(), TreeDef::leaf()});
  TreeDef inner = TreeDef::tuple({TreeDef::leaf(), TreeDef::leaf()});
  using Lists = std::tuple<std::vector<Array>, std::vector<Array>>;
  Lists lists = tree::transpose<Lists>(outer, inner, pairs);
  EXPECT_EQ(values(std::get<0>(lists)), (std::vector<double>{1, 3, 5}));
  EXPECT_EQ(values(std::get<1>(lists)), (std::vector<double>{2, 4, 6}));
}

TEST(Tree, StructsMayHaveMoreThanThirtyFieldsOrNone) {
  model::Wide wide;
  EXPECT_EQ(tree::structure(wide).num_leaves(), 34u);
  EXPECT_EQ(tree::structure(model::Empty{}).num_leaves(), 0u);
}

TEST(Tree, MismatchesNameThePath) {
  std::map<std::string, std::vector<Array>> a{{"a", {Array(1.0), Array(2.0)}}}, b{{"a", {Array(1.0)}}}, c{{"b", {}}};
  auto first = [](Array x, Array) { return x; };
  EXPECT_EQ(message_of([&] { tree::map(first, a, b); }),
            "tree.map: the trees have different structures: at ['a'] expected a list of 2, got a list of 1 "
            "(PyTreeDef({'a': [*, *]}) against PyTreeDef({'a': [*]}))");
  EXPECT_NE(
      message_of([&] { tree::map(first, a, c); }).find("expected a dict with keys {'a'}, got a dict with keys {'b'}"),
      std::string::npos);
  EXPECT_NE(message_of([&] {
              tree::map(first, Layer{}, Layer{{}, {}, Activation::relu});
            }).find("at .activation expected the static value 0, got the static value 1"),
            std::string::npos);
  EXPECT_NE(message_of([&] { tree::unflatten(a, Arrays{Array(1.0)}); }).find("more leaves than the 1 given"),
            std::string::npos);
  EXPECT_NE(message_of([&] { tree::unflatten(a, Arrays(3)); }).find("needs 2 leaves, got 3"), std::string::npos);
  EXPECT_NE(message_of([&] {
              tree::unflatten<std::vector<Array>>(TreeDef::leaf(), Arrays(1));
            }).find("the C++ type needs a list, the structure has an array"),
            std::string::npos);
}

}  // namespace
