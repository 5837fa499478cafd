// Reads mass quotes and quote cancels with QuickFIX C++: framed by its parser, checked against a dictionary as its sessions do, groups
// walked by its own. Says of each what `crates/fix/examples/mass_quotes.rs` wrote down of it. Built and run by `cargo xtask interop --quotes`.
//
//   quickfix-quotes MESSAGES SESSION-DICTIONARY APPLICATION-DICTIONARY
//
// The dictionaries are the same file for FIX 4.4. Fields of our own (20001 to 20003, 9773) are in no dictionary: user-defined fields pass.
// Exit code 1: a message that QuickFIX does not take.

#include <quickfix/DataDictionary.h>
#include <quickfix/FieldConvertors.h>
#include <quickfix/Group.h>
#include <quickfix/Message.h>
#include <quickfix/Parser.h>
#include <quickfix/Values.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

namespace {

// Numbers come with zeros before them; they are read by QuickFIX's own conversion.
std::string number(const FIX::FieldMap &map, int tag) {
  return std::to_string(FIX::IntConvertor::convert(map.getField(tag)));
}

// Price and size of a side: a size of 0 takes it away, whatever the price.
std::string side(const FIX::FieldMap &entry, int price, int size) {
  const std::string quantity = number(entry, size);
  if (quantity == "0") {
    return "-,0";
  }
  char text[64];
  std::snprintf(text, sizeof text, "%.2f,", FIX::DoubleConvertor::convert(entry.getField(price)));
  return text + quantity;
}

std::string line_of(const FIX::Message &message) {
  std::string line = number(message.getHeader(), FIX::FIELD::MsgSeqNum) + " " + number(message, FIX::FIELD::QuoteID);
  if (message.getHeader().getField(FIX::FIELD::MsgType) == FIX::MsgType_QuoteCancel) {
    return line + (message.getField(FIX::FIELD::QuoteCancelType) == "4" ? " cancel" : " ?");
  }
  const int sets = static_cast<int>(message.groupCount(FIX::FIELD::NoQuoteSets));
  for (int s = 1; s <= sets; ++s) {
    FIX::Group set(FIX::FIELD::NoQuoteSets, FIX::FIELD::QuoteSetID);
    message.getGroup(s, set);
    const int entries = static_cast<int>(set.groupCount(FIX::FIELD::NoQuoteEntries));
    for (int e = 1; e <= entries; ++e) {
      FIX::Group entry(FIX::FIELD::NoQuoteEntries, FIX::FIELD::QuoteEntryID);
      set.getGroup(e, entry);
      line += "|" + number(entry, FIX::FIELD::QuoteEntryID) + "," + entry.getField(FIX::FIELD::Symbol) + ","
            + side(entry, FIX::FIELD::BidPx, FIX::FIELD::BidSize) + ","
            + side(entry, FIX::FIELD::OfferPx, FIX::FIELD::OfferSize);
    }
  }
  return line;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: quickfix-quotes MESSAGES SESSION-DICTIONARY APPLICATION-DICTIONARY\n");
    return 2;
  }
  try {
    std::ifstream in(argv[1], std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    FIX::DataDictionary session(argv[2]), application(argv[3]);
    session.checkUserDefinedFields(false);
    application.checkUserDefinedFields(false);
    FIX::Parser parser;
    parser.addToStream(bytes);
    std::string text;
    while (parser.readFixMessage(text)) {
      FIX::Message message;
      try {
        message.setString(text, true, &session, &application);
        FIX::DataDictionary::validate(message, &session, &application);
        std::printf("%s\n", line_of(message).c_str());
      } catch (const std::exception &why) {
        for (char &c : text) {
          c = c == '\x01' ? '|' : c;
        }
        std::fprintf(stderr, "%s: %s\n", why.what(), text.c_str());
        return 1;
      }
    }
  } catch (const std::exception &why) {
    std::fprintf(stderr, "quickfix-quotes: %s\n", why.what());
    return 2;
  }
  return 0;
}
