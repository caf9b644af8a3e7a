#include "tenon/pipelines/chat_template.h"

#include <gtest/gtest.h>

#include "tenon/base/error.h"

namespace tenon::pipelines {
namespace {

std::string rendered(std::string_view source, std::vector<ChatMessage> messages = {},
                     bool prompt = true) {
  return ChatTemplate(source, "<s>", "</s>").render(messages, prompt);
}

TEST(ChatTemplate, Expressions) {
  struct Case {
    const char* source;
    const char* text;
  } cases[] = {
      {"", ""},
      {"a{# c #}b", "ab"},
      {"{{ 1 + 2 * 3 - 4 // 3 }}", "6"},
      {"{{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2.5 * 2 }}", "-4 2 3.5 5.0"},
      {"{{ 'a' ~ 1 ~ true ~ none }}", "a1TrueNone"},
      {"{{ 'x' if 1 > 2 else 'y' }}{{ 'z' if false }}", "y"},
      {"{{ 'b' in 'abc' and 2 not in [1, 3] }}", "True"},
      {"{{ missing }}|{{ missing is defined }}|{{ missing is not defined }}", "|False|True"},
      {"{{ [1, 2, 3][-1] }}{{ [1, 2, 3][1:] | length }}{{ 'h\xc3\xa9llo'[1] }}{{ 'hello'[:2] }}",
       "32\xc3\xa9he"},
      {"{{ {'a': {'b': 5}}.a['b'] }}", "5"},
      {"{{ '  x '|trim }}{{ 'Ab'|upper }}{{ 'Ab'|lower }}{{ 'aB'|capitalize }}", "xABabAb"},
      {"{{ missing|default('d') }}{{ ''|default('e', true) }}{{ [1, 2]|join('-') }}", "de1-2"},
      {"{{ {'k': [1, 'a\"\\n', none, true]}|tojson }}", "{\"k\": [1, \"a\\\"\\n\", null, true]}"},
      {"{{ 'a,b'.split(',')[1] }}{{ ' x '.strip() }}{{ 'xxa'.lstrip('x') }}{{ "
       "'abc'.startswith('ab') }}",
       "bxaTrue"},
      {"{{ 'aXbX'.replace('X', '..') }}", "a..b.."},
      {"{% set x = 1 %}{% if x == 2 %}two{% elif x == 1 %}one{% else %}more{% endif %}", "one"},
      {"{% for c in ['a', 'b'] %}{{ loop.index }}{{ c }}{% if not loop.last %},{% endif %}{% "
       "endfor %}",
       "1a,2b"},
      {"{% for c in [] %}x{% else %}none{% endfor %}", "none"},
      {"{% set x = 0 %}{% for i in range(3) %}{% set x = i %}{% endfor %}{{ x }}", "0"},
      {"{% set ns = namespace(x=0) %}{% for i in range(4) %}{% set ns.x = ns.x + i %}{% endfor "
       "%}{{ ns.x }}",
       "6"},
      {"a\n{%- if true -%}\n b \n{%- endif %} c", "ab c"},
      {"{% if true %}\nx\n  {% endif %}\ny", "x\ny"},
      {"{% if true %}\n    {% if true %}\nx{% endif %}{% endif %}", "x"},
      {"  {{ 'x' }}\n", "  x\n"},
      {"{{ bos_token }}{{ eos_token }}", "<s></s>"},
  };
  for (const Case& c : cases) EXPECT_EQ(rendered(c.source), c.text) << c.source;
}

const std::vector<ChatMessage> kTalk = {{"system", "Be brief."}, {"user", " Hi "}};

TEST(ChatTemplate, Llama3) {
  const char* source =
      "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
      "'<|start_header_id|>' + "
      "message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if "
      "loop.index0 == 0 "
      "%}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if "
      "add_generation_prompt %}"
      "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}";
  EXPECT_EQ(
      rendered(source, kTalk),
      "<s><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|><|start_header_id|>user"
      "<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n");
}

TEST(ChatTemplate, ChatML) {
  const char* source =
      "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + "
      "message['content'] + '<|im_end|>' + "
      "'\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif "
      "%}";
  EXPECT_EQ(rendered(source, kTalk, false),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n Hi <|im_end|>\n");
}

TEST(ChatTemplate, MarkupInMessagesIsText) {
  EXPECT_EQ(rendered("{{ messages[0].content }}", {{"user", "{{ 1 }}{% x %}"}}), "{{ 1 }}{% x %}");
}

TEST(ChatTemplate, RefusalsSayWhatAndWhere) {
  struct Case {
    const char* source;
    const char* text;
  } cases[] = {
      {"\n{% macro f() %}", "chat template: line 2: the tag \"macro\" is not supported"},
      {"{{ x|batch(2) }}", "chat template: line 1: the filter \"batch\" is not supported"},
      {"{{ x is odd }}", "chat template: line 1: the test \"odd\" is not supported"},
      {"{{ strftime_now('%d') }}",
       "chat template: line 1: the function \"strftime_now\" is not supported"},
      {"{{ x.items() }}", "chat template: line 1: the method \"items\" is not supported"},
      {"{{ 'a }}", "chat template: line 1: a string does not end"},
      {"{% if true %}x", "chat template: line 1: expected endif"},
      {"{% endif %}", "chat template: line 1: unexpected endif"},
      {"{{ 1 ", "chat template: line 1: expected }}"},
      {"{{", "chat template: line 1: expected an expression"},
      {"{{ 1 // 0 }}", "chat template: line 1: division by zero"},
      {"{{ 'a' + 1 }}", "chat template: line 1: + between values that are not numbers or strings"},
      {"{{ missing.x }}", "chat template: line 1: an attribute of an undefined value"},
      {"{{ raise_exception('only users') }}", "chat template: only users"},
      {"{{ 9223372036854775807 + 1 }}", "chat template: line 1: an integer overflows"},
      {"{% for i in range(100000000) %}{% endfor %}", "chat template: line 1: range is too long"},
      {"{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
       "chat template: line 1: the template takes too long"},
      {"{% set n = namespace(x='aaaaaaaaaaaaaaaa') %}{% for i in range(99) %}{% set n.x = n.x + "
       "n.x %}{% endfor %}",
       "chat template: line 1: the template makes too much text"},
  };
  for (const Case& c : cases) {
    try {
      std::string out = rendered(c.source);
      ADD_FAILURE() << c.source << " gave " << out.substr(0, 100);
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(), c.text);
    }
  }
  std::string deep = "{{ " + std::string(100000, '(') + "1";
  EXPECT_THROW(rendered(deep), FormatError);
  deep.clear();
  for (int i = 0; i < 100000; ++i) deep += "{% if x %}";
  EXPECT_THROW(rendered(deep), FormatError);
  EXPECT_THROW(rendered("{{ " + std::string(100000, '-') + "1 }}"), FormatError);
}

}  // namespace
}  // namespace tenon::pipelines
