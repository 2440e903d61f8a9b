"""What the flows ask: questions with real passages and answers, in seven languages."""

from __future__ import annotations

from typing import NamedTuple

from tests.public.texts import TEXTS


class Topic(NamedTuple):
    question: str
    passages: tuple[str, ...]
    answer: str


def _of(question: str, keys: str, answer: str) -> Topic:
    return Topic(question, tuple(TEXTS[key] for key in keys.split()), answer)


LAKE = (
    _of(
        "How old does a pike get?",
        "pike pike_average",
        "The oldest one reached 33 years, and most live for about 11.",
    ),
    _of("From when on may I fish through the ice?", "rules dues", "From 15 January; a licence is 12,50 € a day."),
    _of("What do I pay for a mooring?", "mooring sauna", "It is 240 € a season, says Fru Åkesson."),
    _of("How thick must ice be to bear me?", "ice thaw wiki_ice", "10 cm; grey ice is only half as strong."),
    _of("Where are perch in winter?", "perch wiki_perch", "Under the ice near reed beds, 3–5 m deep."),
    _of("Why does the lake look blue?", "blue reed warm", "Since water swallows red light first."),
    _of("When do smelt spawn?", "smelt shrimps page_layer", "In April, where streams flow into the lake."),
    _of("Who won the regatta of 2024?", "regatta_2024 race_founded race_women", "Ebba Lund, in a boat of 1931."),
    _of("Who built the mole of Näs?", "mole_built mole_storm mole_rented", "Convicts did, from 1861 to 1868."),
    _of("How long does a seiche swing?", "seiche_period seiche_height seiche_record", "For 71 minutes."),
    _of("Why is Storby's glass green?", "glass_first glass_colour storby_arts", "Iron in the sand makes it green."),
    _of("Until when does tram 4 run?", "tram_route tram_fare tram_depot", "Until midnight, in 22 minutes a ride."),
    _of("Who built the great clock of Brenn?", "clock_builder clock_bell riedl_trade", "Anton Riedl, in 1788."),
    _of("What does a colony of bees eat in winter?", "bees_lime bees_pine bees_winter", "12 kg of its stores."),
)

ISLAND = (
    _of(
        "What came of the first ferry?",
        "ferry boiler",
        "It burnt peat until 1962; its boiler is at the museum of Näs.",
    ),
    _of(
        "Who set up the ferry line?",
        "ferry_line ferry_fleet ferry_dock",
        "Eleven farmers, who each gave a cow, in 1897.",
    ),
    _of(
        "When do spring herring come?", "herring_spring herring_autumn", "In the second week of April, 24 cm long."
    ),
    _of("Who may land at the inner quay?", "harbour_quays harbour_sand", "Boats that land fish, by night."),
    _of("How deep is the fresh water?", "water_lens water_pond", "The lens below the dunes is 14 m thick."),
    _of("How many geese were counted?", "geese_count farm_geese", "6,400 brent geese on 12 January 2026."),
    _of("When are meadows mown?", "geese_meadow garden_gate", "Not before the geese have left Vester's south end."),
    _of("Who was the keeper of the light?", "essay_keeper", "Ida Moen, who was born at Näs in 1871."),
    _of("What are boats built of?", "essay_boats", "Of larch, plank on plank."),
    _of("What mends a torn net?", "essay_nets", "Birch needles, at night."),
    _of("How long was the lake frozen?", "page_freezing", "On 97 days around 1900, on 41 around 2020."),
    _of("When were the last horse races?", "page_races", "In 1931; the winner got a cup and a cheese."),
    _of("Who won the race round Vester?", "rowing_result rowing_course", "Signe Dahl, in 3 h 12 min."),
    _of("Who drew the fort?", "search_fort church_long", "A Dutchman, in 1684. It never fired."),
)

GERMAN = tuple(
    Topic(*one)
    for one in (
        (
            "Wann öffnet die Bücherei?",
            ("Die Bücherei am Markt öffnet werktags um neun, samstags erst um elf.",),
            "Um neun.",
        ),
        (
            "Was kostet ein Ausweis?",
            ("Ein Jahresausweis kostet zwölf Euro; für Kinder ist er frei.",),
            "Zwölf Euro.",
        ),
        (
            "Wie lange darf ich ein Buch behalten?",
            ("Bücher werden für vier Wochen verliehen und zweimal verlängert.",),
            "Vier Wochen.",
        ),
        (
            "Gibt es einen Lesesaal?",
            ("Im zweiten Stock liegt ein Lesesaal mit vierzig Plätzen zum Hof.",),
            "Ja, im zweiten Stock.",
        ),
        (
            "Wo kann ich drucken?",
            ("Zwei Drucker stehen neben der Treppe, eine Seite kostet fünf Cent.",),
            "Neben der Treppe.",
        ),
        (
            "Wer leitet die Sammlung?",
            ("Die Sammlung leitet seit 2011 Frau Brandl, eine Historikerin aus Passau.",),
            "Frau Brandl.",
        ),
        (
            "Darf mein Hund mit?",
            ("Hunde warten draußen an den Ringen; Blindenhunde dürfen überall hinein.",),
            "Nein.",
        ),
        (
            "Wann ist Lesenacht?",
            ("Die Lesenacht findet am letzten Freitag im November bis Mitternacht statt.",),
            "Ende November.",
        ),
        ("Wie alt ist das Haus?", ("Das Haus wurde 1736 als Salzspeicher gebaut und 1954 umgebaut.",), "Von 1736."),
        (
            "Gibt es Noten?",
            ("Noten und Schallplatten stehen im Keller, nach Komponisten geordnet.",),
            "Ja, im Keller.",
        ),
        (
            "Was geschieht bei Verlust?",
            ("Wer ein Buch verliert, bezahlt den Neupreis und drei Euro dazu.",),
            "Man bezahlt es.",
        ),
        (
            "Kann man vorbestellen?",
            ("Vorbestellungen bleiben zehn Tage lang an der Theke liegen.",),
            "Ja, für zehn Tage.",
        ),
        (
            "Wo parke ich?",
            ("Hinter dem Haus sind sechs Plätze, die ab achtzehn Uhr nichts kosten.",),
            "Hinter dem Haus.",
        ),
        ("Gibt es Kurse?", ("Jeden Dienstag lehrt ein Buchbinder, wie man einen Rücken leimt.",), "Ja, dienstags."),
    )
)

JAPANESE = tuple(
    Topic(*one)
    for one in (
        (
            "図書館は何時に開きますか。",
            ("市立図書館は平日は午前九時、土曜日は午前十一時に開館する。",),
            "平日は九時です。",
        ),
        (
            "カードはいくらですか。",
            ("利用者カードの年会費は千二百円で、小学生以下は無料である。",),
            "千二百円です。",
        ),
        ("本は何日借りられますか。", ("貸出期間は四週間で、予約がなければ二回まで延長できる。",), "四週間です。"),
        ("閲覧室はありますか。", ("二階には中庭に面した四十席の閲覧室が設けられている。",), "二階にあります。"),
        ("印刷はどこでできますか。", ("階段の横に二台の印刷機があり、一枚五円で使える。",), "階段の横です。"),
        ("館長は誰ですか。", ("館長の森田さんは長崎出身の歴史家で、二〇一一年に就任した。",), "森田さんです。"),
        ("犬を連れて入れますか。", ("犬は外の柱につないでおく。ただし盲導犬は館内に入れる。",), "盲導犬だけです。"),
        ("朗読の夜はいつですか。", ("朗読の夜は十月最後の金曜日に開かれ、深夜まで続く。",), "十月の末です。"),
        (
            "建物はいつ建てられましたか。",
            ("建物は一七三六年に塩の倉として建てられ、戦後に改築された。",),
            "一七三六年です。",
        ),
        ("楽譜はありますか。", ("楽譜とレコードは地下の棚に作曲家の順で並んでいる。",), "地下にあります。"),
        (
            "本をなくしたらどうなりますか。",
            ("本をなくした人は定価に三百円を加えて弁償する決まりだ。",),
            "弁償します。",
        ),
        ("予約はできますか。", ("予約した本は窓口に十日間取り置かれ、その後は棚に戻る。",), "できます。"),
        (
            "車はどこに止めますか。",
            ("裏の駐車場には六台分あり、午後六時からは料金がかからない。",),
            "裏の駐車場です。",
        ),
        ("講座はありますか。", ("毎週火曜日に製本の職人が背表紙の直し方を教えている。",), "火曜日にあります。"),
    )
)

CHINESE = tuple(
    Topic(*one)
    for one in (
        ("图书馆几点开门？", ("市图书馆平日上午九点开放，星期六要到十一点才开门。",), "平日九点。"),
        ("办证多少钱？", ("借书证每年收费十二元，小学生和老人可以免费办理。",), "十二元。"),
        ("书可以借多久？", ("每本书的借期是四个星期，没有人预约时可以续借两次。",), "四个星期。"),
        ("有阅览室吗？", ("二楼靠院子的一边有一间四十个座位的阅览室。",), "在二楼。"),
        ("在哪里打印？", ("楼梯旁边摆着两台打印机，每页只收五分钱。",), "楼梯旁边。"),
        ("档案由谁管理？", ("档案部自二〇一一年起由来自杭州的历史学者沈女士负责。",), "沈女士。"),
        ("可以带狗吗？", ("狗要拴在门外的铁环上，只有导盲犬可以进馆。",), "只有导盲犬。"),
        ("读书夜是哪天？", ("读书夜定在十月的最后一个星期五，一直开到半夜。",), "十月底。"),
        ("这座楼有多老？", ("这座楼建于一七三六年，原来是盐仓，战后才改建。",), "一七三六年。"),
        ("有乐谱吗？", ("乐谱和唱片放在地下室，按作曲家的名字排列。",), "在地下室。"),
        ("书丢了怎么办？", ("丢书的人要按原价赔偿，另外再付三元手续费。",), "要赔偿。"),
        ("能预约吗？", ("预约的书在柜台保留十天，过期就放回书架。",), "可以。"),
        ("车停在哪儿？", ("楼后面有六个车位，晚上六点以后不收费。",), "楼后面。"),
        ("有课程吗？", ("每个星期二有一位装订师傅教大家怎样修补书脊。",), "星期二有。"),
    )
)

THAI = tuple(
    Topic(*one)
    for one in (
        ("ห้องสมุดเปิดกี่โมง", ("ห้องสมุดเปิดวันธรรมดาเก้าโมงเช้าและวันเสาร์เปิดสิบเอ็ดโมง",), "เก้าโมงเช้า"),
        ("ค่าสมาชิกเท่าไร", ("ค่าสมาชิกปีละหนึ่งร้อยยี่สิบบาทส่วนเด็กไม่ต้องจ่ายเงิน",), "หนึ่งร้อยยี่สิบบาท"),
        ("ยืมหนังสือได้นานเท่าใด", ("หนังสือยืมได้สี่สัปดาห์และต่ออายุได้อีกสองครั้ง",), "สี่สัปดาห์"),
        ("มีห้องอ่านหนังสือไหม", ("ชั้นสองมีห้องอ่านหนังสือสี่สิบที่นั่งอยู่ด้านสวน",), "มีที่ชั้นสอง"),
        ("พิมพ์เอกสารที่ไหน", ("ข้างบันไดมีเครื่องพิมพ์สองเครื่องคิดหน้าละห้าบาท",), "ข้างบันได"),
        ("ใครดูแลหอจดหมายเหตุ", ("หอจดหมายเหตุดูแลโดยนักประวัติศาสตร์ชื่อคุณสมศรี",), "คุณสมศรี"),
        ("พาสุนัขเข้าได้ไหม", ("สุนัขต้องรออยู่ข้างนอกยกเว้นสุนัขนำทางคนตาบอด",), "ไม่ได้"),
        ("คืนอ่านหนังสือวันไหน", ("คืนอ่านหนังสือจัดวันศุกร์สุดท้ายของเดือนตุลาคม",), "ปลายเดือนตุลาคม"),
        ("ตึกนี้เก่าแค่ไหน", ("ตึกนี้สร้างเป็นคลังเกลือเมื่อสามร้อยปีก่อนและซ่อมใหม่หลังสงคราม",), "สามร้อยปี"),
        ("มีโน้ตเพลงไหม", ("โน้ตเพลงกับแผ่นเสียงเก็บไว้ชั้นใต้ดินเรียงตามชื่อผู้แต่ง",), "มีที่ชั้นใต้ดิน"),
        ("ถ้าทำหนังสือหาย", ("ผู้ที่ทำหนังสือหายต้องจ่ายราคาเต็มและค่าธรรมเนียมอีกสามสิบบาท",), "ต้องจ่ายเงิน"),
        ("จองหนังสือได้ไหม", ("หนังสือที่จองไว้จะเก็บที่เคาน์เตอร์นานสิบวัน",), "ได้"),
        ("จอดรถที่ไหน", ("หลังตึกมีที่จอดรถหกคันและหลังหกโมงเย็นไม่เสียค่าจอด",), "หลังตึก"),
        ("มีหลักสูตรไหม", ("ทุกวันอังคารช่างเย็บเล่มสอนวิธีซ่อมสันหนังสือ",), "มีวันอังคาร"),
    )
)
