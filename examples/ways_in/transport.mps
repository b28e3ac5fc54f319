NAME transport
ROWS
 N  Obj     
 L  mill    
 L  yard    
 G  north   
 G  south   
 G  west    
COLUMNS
    mill_north  Obj       4
    mill_north  mill      1
    mill_north  north     1
    mill_south  Obj       6
    mill_south  mill      1
    mill_south  south     1
    mill_west  Obj       9
    mill_west  mill      1
    mill_west  west      1
    yard_north  Obj       5
    yard_north  yard      1
    yard_north  north     1
    yard_south  Obj       3
    yard_south  yard      1
    yard_south  south     1
    yard_west  Obj       8
    yard_west  yard      1
    yard_west  west      1
RHS
    RHS_V     mill      70
    RHS_V     yard      60
    RHS_V     north     35
    RHS_V     south     50
    RHS_V     west      30
BOUNDS
 UP BOUND     mill_north  40
 UP BOUND     mill_south  40
 UP BOUND     mill_west  40
 UP BOUND     yard_north  40
 UP BOUND     yard_south  40
 UP BOUND     yard_west  40
ENDATA
