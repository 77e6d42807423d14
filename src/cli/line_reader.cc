#include "cli/line_reader.h"

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <cwchar>
#include <iostream>
#include <iterator>

#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include "cli/interrupt.h"

namespace ingot::cli {
namespace {

constexpr int kHistoryLines = 1000;

// The editor counts characters by the thread's locale. Only their classes are taken from it: how
// numbers are written stays "C".
class CharacterSet {
 public:
  static base::Result<CharacterSet> use_utf8() {
    CharacterSet set;
    set.locale_ = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    if (set.locale_ == nullptr) {
      return base::error("the locale C.UTF-8 is missing; install it, or pipe the input");
    }
    ::uselocale(set.locale_);
    return set;
  }

  CharacterSet(CharacterSet&& other) noexcept : locale_(std::exchange(other.locale_, nullptr)) {}
  CharacterSet& operator=(CharacterSet&&) = delete;
  ~CharacterSet() {
    if (locale_ == nullptr) return;
    ::uselocale(LC_GLOBAL_LOCALE);
    ::freelocale(locale_);
  }

 private:
  CharacterSet() = default;
  locale_t locale_ = nullptr;
};

// Waits for a key or for Ctrl-C, whichever came first or comes. False: Ctrl-C, or the input is
// gone.
bool wait_for_key() {
  pollfd inputs[] = {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                     {.fd = InterruptGuard::descriptor(), .events = POLLIN, .revents = 0}};
  while (::poll(inputs, std::size(inputs), -1) < 0) {
    if (errno != EINTR) return false;
  }
  return inputs[1].revents == 0;
}

// The editor's source of characters: 1 for one, 0 at the end of the input, -1 for none.
int read_key(EditLine*, wchar_t* key) {
  std::mbstate_t state{};
  while (true) {
    if (!wait_for_key()) {
      errno = EINTR;
      return -1;
    }
    char byte = 0;
    const ssize_t count = ::read(STDIN_FILENO, &byte, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return static_cast<int>(count);
    const size_t length = std::mbrtowc(key, &byte, 1, &state);
    if (length == static_cast<size_t>(-2)) continue;  // more of the character is to come
    if (length == static_cast<size_t>(-1)) *key = 0xFFFD;
    return 1;
  }
}

}  // namespace

struct LineReader::Editor {
  explicit Editor(CharacterSet used) : character_set(std::move(used)) {
    line = el_init("ingot", stdin, stdout, stderr);
    lines = history_init();
    HistEvent event;
    history(lines, &event, H_SETSIZE, kHistoryLines);
    history(lines, &event, H_SETUNIQUE, 1);
    el_set(line, EL_CLIENTDATA, this);
    el_set(line, EL_PROMPT, prompt_of);
    el_set(line, EL_EDITOR, "emacs");
    el_set(line, EL_GETCFN, read_key);
    el_set(line, EL_HIST, history, lines);
    bind_keys();
  }
  ~Editor() {
    history_end(lines);
    el_end(line);
  }

  // What terminals send for keys that the editor does not know by itself.
  void bind_keys() {
    constexpr const char* kKeys[][2] = {
        {"\\e[1;5D", "ed-prev-word"},      {"\\e[1;5C", "em-next-word"},
        {"\\e[1~", "ed-move-to-beg"},      {"\\e[4~", "ed-move-to-end"},
        {"\\e[3~", "ed-delete-next-char"}, {"\\e[5~", "ed-prev-history"},
        {"\\e[6~", "ed-next-history"}};
    for (const auto& [key, action] : kKeys) el_set(line, EL_BIND, key, action, nullptr);
  }

  static char* prompt_of(EditLine* line) {
    Editor* editor = nullptr;
    el_get(line, EL_CLIENTDATA, &editor);
    return editor->prompt.data();
  }

  void remember(const char* text) {
    HistEvent event;
    history(lines, &event, H_ENTER, text);
  }

  CharacterSet character_set;
  EditLine* line = nullptr;
  History* lines = nullptr;
  std::string prompt;
};

LineReader::LineReader() = default;
LineReader::LineReader(LineReader&&) noexcept = default;
LineReader& LineReader::operator=(LineReader&&) noexcept = default;
LineReader::~LineReader() = default;

base::Result<LineReader> LineReader::open() {
  LineReader reader;
  if (::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1) {
    reader.editor_ = std::make_unique<Editor>(TRY(CharacterSet::use_utf8()));
  }
  return reader;
}

base::Result<LineReader::Line> LineReader::read(const std::string& prompt) {
  Line line;
  if (editor_ == nullptr) {
    if (std::getline(std::cin, line.text)) {
      line.outcome = Outcome::kLine;
      if (line.text.ends_with('\r')) line.text.pop_back();
    } else if (std::cin.bad()) {
      return base::error("standard input: {}", std::strerror(errno));
    }
    return line;
  }
  editor_->prompt = prompt;
  InterruptGuard::clear();
  int count = 0;
  const char* text = el_gets(editor_->line, &count);
  if (text != nullptr && count > 0) {
    line = {Outcome::kLine, std::string(text, static_cast<size_t>(count))};
    if (line.text.ends_with('\n')) line.text.pop_back();
    if (!line.text.empty()) editor_->remember(line.text.c_str());
  } else if (InterruptGuard::pressed()) {
    line.outcome = Outcome::kInterrupted;
    std::fputs("^C\n", stdout);
    el_reset(editor_->line);
  }
  return line;
}

}  // namespace ingot::cli
