#include "profile/code/forms.h"

namespace heddle::profile::code {
namespace {

enum Form : uint64_t {
  kBlock2 = 0x03,
  kBlock4 = 0x04,
  kBlock = 0x09,
  kBlock1 = 0x0a,
  kFlag = 0x0c,
  kSdata = 0x0d,
  kRefAddr = 0x10,
  kRef1 = 0x11,
  kRef2 = 0x12,
  kRef4 = 0x13,
  kRef8 = 0x14,
  kRefUdata = 0x15,
  kExprloc = 0x18,
  kFlagPresent = 0x19,
  kStrx = 0x1a,
  kRefSup4 = 0x1c,
  kStrpSup = 0x1d,
  kData16 = 0x1e,
  kRefSig8 = 0x20,
  kLoclistx = 0x22,
  kRefSup8 = 0x24,
  kStrx1 = 0x25,
  kStrx2 = 0x26,
  kStrx3 = 0x27,
  kStrx4 = 0x28,
  kAddrx1 = 0x29,
  kAddrx2 = 0x2a,
  kAddrx3 = 0x2b,
  kAddrx4 = 0x2c,
};

// How many bytes a value takes that is no number of its own; -1: it says so itself.
int64_t fixed_size(uint64_t form, uint16_t version) {
  switch (form) {
    case kFormImplicitConst:
    case kFlagPresent:
      return 0;
    case kFlag:
    case kRef1:
    case kStrx1:
      return 1;
    case kRef2:
    case kStrx2:
      return 2;
    case kStrx3:
      return 3;
    case kFormStr:
    case kFormLineStr:
    case kRef4:
    case kRefSup4:
    case kStrpSup:
    case kStrx4:
      return 4;
    case kRefAddr:
      return version == 2 ? 8 : 4;
    case kRef8:
    case kRefSig8:
    case kRefSup8:
      return 8;
    case kData16:
      return 16;
    default:
      return -1;
  }
}

void skip_other(Bytes& bytes, uint64_t form, uint16_t version) {
  if (const int64_t size = fixed_size(form, version); size >= 0) {
    bytes.take(static_cast<uint64_t>(size));
    return;
  }
  switch (form) {
    case kRefUdata:
    case kStrx:
    case kLoclistx:
      bytes.unsigned_leb();
      return;
    case kFormString:
      bytes.text();
      return;
    case kBlock1:
      bytes.take(bytes.u8());
      return;
    case kBlock2:
      bytes.take(bytes.u16());
      return;
    case kBlock4:
      bytes.take(bytes.u32());
      return;
    case kBlock:
    case kExprloc:
      bytes.take(bytes.unsigned_leb());
      return;
    default:
      fail_damaged("a value is of a form that is not read");
  }
}

}  // namespace

void skip_form(Bytes& bytes, uint64_t form, uint16_t version) {
  uint64_t value = 0;
  read_number(bytes, form, version, value);
}

bool read_number(Bytes& bytes, uint64_t form, uint16_t version, uint64_t& value) {
  switch (form) {
    case kFormData1:
      value = bytes.u8();
      return true;
    case kFormData2:
      value = bytes.u16();
      return true;
    case kFormData4:
    case kFormSecOffset:
      value = bytes.u32();
      return true;
    case kFormAddr:
    case kFormData8:
      value = bytes.u64();
      return true;
    case kFormUdata:
    case kFormRngListx:
    case kFormAddrx:
      value = bytes.unsigned_leb();
      return true;
    case kAddrx1:
      value = bytes.u8();
      return true;
    case kAddrx2:
      value = bytes.u16();
      return true;
    case kAddrx3:
      value = bytes.u16();
      value |= static_cast<uint64_t>(bytes.u8()) << 16;
      return true;
    case kAddrx4:
      value = bytes.u32();
      return true;
    case kSdata:
      value = static_cast<uint64_t>(bytes.signed_leb());
      return true;
    default:
      skip_other(bytes, form, version);
      return false;
  }
}

}  // namespace heddle::profile::code
