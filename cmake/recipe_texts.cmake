# Writes recipe_texts.cc, which embeds recipe files, whenever CMake runs; changing a recipe makes it
# run. The file is touched only when its text changes. CONFIGURE_DEPENDS sees added recipes.
function(embed_recipe_texts target folder)
  file(GLOB recipes CONFIGURE_DEPENDS ${folder}/*.toml)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${recipes})
  set(names "")
  foreach(recipe IN LISTS recipes)
    get_filename_component(name ${recipe} NAME_WLE)
    list(APPEND names ${name})
  endforeach()
  list(SORT names)
  set(entries "")
  set(count 0)
  foreach(name IN LISTS names)
    file(READ ${folder}/${name}.toml text)
    string(APPEND entries "    {.name = \"${name}\", .text = R\"recipe(${text})recipe\"},\n")
    math(EXPR count "${count} + 1")
  endforeach()

  string(CONCAT source
    "#include \"quantize/recipe_texts.h\"\n\n"
    "#include <array>\n\n"
    "namespace ingot::quantize {\n\n"
    "std::span<const RecipeText> recipe_texts() {\n"
    "  static constexpr std::array<RecipeText, ${count}> kTexts = {{\n"
    "${entries}"
    "  }};\n"
    "  return kTexts;\n"
    "}\n\n"
    "}  // namespace ingot::quantize\n")
  set(output ${CMAKE_CURRENT_BINARY_DIR}/recipe_texts.cc)
  set(before "")
  if(EXISTS ${output})
    file(READ ${output} before)
  endif()
  if(NOT before STREQUAL source)
    file(WRITE ${output} "${source}")
  endif()
  target_sources(${target} PRIVATE ${output})
endfunction()
